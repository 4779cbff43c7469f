"""Families of versions that tables and figures treat apart."""

OURS, PEER = "fast", "peer"

CHOOSER = "fast_auto"
"""This version only passes problems on, so it is never itself the fastest of ours."""
