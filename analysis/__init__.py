"""From run directories to frames, figures, tables and reports.

Data flows one way: `model` reads run directories, `measures` computes medians, intervals and
speedups, `figures` draws them, and `pages` writes tables and reports. Nothing here needs a GPU or
the program that measured."""
