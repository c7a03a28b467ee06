"""The worktrees of runs: list, open, merge and salvage them, and remove what is merged. Nothing unmerged is deleted."""
