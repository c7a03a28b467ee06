"""What jackline costs, as ratios measured in one run (`make bench`). Nothing in the package needs it."""
