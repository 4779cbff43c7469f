"""Computes medians and intervals, speedups, tests and claims from rows."""
