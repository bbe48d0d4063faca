"""Skills: advice distilled from rollouts, the bank that keeps it, and how the relevant few are found again."""
