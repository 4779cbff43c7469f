"""Families of versions that tables and figures treat apart."""

OURS, PEER = "fast", "peer"

CHOOSER = "fast_auto"
"""It only hands problems on: not the fastest of ours itself."""
