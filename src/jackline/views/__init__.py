"""What a person reads, projected from the store; never writes to it."""
