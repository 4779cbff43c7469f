"""Reads and checks run directories: rows become frames."""
