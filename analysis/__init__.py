"""From run directories to frames, figures, tables and reports.

Data flows one way: `load` reads run directories, `derive` makes one row a point out of the samples,
`draw` makes figures of those rows, `report` and `readme` write them up. Nothing here needs a GPU or
the program that measured."""
