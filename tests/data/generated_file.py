"""A file that compare_readers.py generates: what it says, and how it must be read."""

SEPARATORS = {"csv": ",", "tsv": "\t", "space": None}
DELIMITERS = {";": ";", "|": "|", ":": ":", "tab": "\t", ",": ","}


class File:
    """A generated file, the options to read it with, and what it contains."""

    def __init__(self):
        self.raw = b""
        self.format = "csv"
        self.header = ""  # as in the request: "", "0" or "1"
        self.has_header = False
        self.index = ""
        self.label = ""
        self.n = ""
        self.dim = ""
        self.delimiter = ""
        self.decimal = ""
        self.columns = []  # as in the request: numbers, or names after =
        self.array = ""
        self.values = None  # of npz: the array before anything was damaged
        self.plain = True  # nothing odd in it: the reader must read it
        self.unclear_header = False  # the first row may or may not be one

    @property
    def separator(self):
        """What is between columns. None: blanks."""
        if self.delimiter:
            return DELIMITERS[self.delimiter]
        return ";" if self.format == "csv" and self.decimal == "," else SEPARATORS[self.format]

    @property
    def by_name(self):
        return any(c.startswith("=") for c in [self.index, self.label, *self.columns])
