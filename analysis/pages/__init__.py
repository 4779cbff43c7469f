"""Writes tables, README blocks and reports from measures and figures."""
