"""Run directories, read and checked: rows become frames."""
