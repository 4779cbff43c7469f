"""What the rows say: medians and intervals, speedups, tests, claims."""
