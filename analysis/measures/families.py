"""Families of versions that tables and figures treat apart."""

CHOOSERS = {"fast": "fast_auto", "fast_cpu": "fast_cpu_auto"}
"""The ladders of this project, each with the version that only passes problems on to the others. So
a chooser is never itself the fastest."""

PEER = "peer"
