"""Generates text files: csv, tsv, and columns between blanks."""

from generated_file import File
from generated_numbers import ODD, QUOTED_ODD, decimals

NAMES = ["x", "y", "a b", "col1", "x1", "sepal length (cm)", "_id", "e3", "V1", "width"]
# Numbers in these columns are refused unless the columns are chosen.
NO_COORDINATES = ["id", "Index", "class", "Target", "label"]
ODD_NAMES = [
    "é",
    "日本",
    "1st",
    "",
    "(cm)",
    "2010",
    "nan",
    "NA",
    "x,y",
    'a"b',
    "#id",
    "１",
    "-",
    "x\ty",
    "5",
]
LABELS = ["a", "Iris-setosa", "b c", "7", "", "x y z", "kind", "ü", "nan", "-1", "1e3", "0x5"]


def by_name(file, names, random_):
    """Writes the columns of the request by name, or some of them."""
    columns = len(names)

    def name(text):
        i = int(text) % columns
        if text == "" or random_.random() < 0.3 or any(c in names[i] for c in "\t\x1f\n"):
            return text
        if names.count(names[i]) > 1:
            file.plain = False
        return "=" + names[i]

    file.index = name(file.index) if file.index else ""
    file.label = name(file.label) if file.label else ""
    file.columns = [name(text) for text in file.columns]


def text_file(random_):
    return _TextFile(random_).made()


class _TextFile:
    """A table that is written as text, and the request to read it with.

    Half of the files are odd: damage() may happen at each step. The steps draw from one stream of
    random numbers, so their order is part of what a seed means.
    """

    def __init__(self, random_):
        self.random = random_
        self.file = File()
        self._choose_format()
        self.rows, self.columns = random_.randrange(1, 7), random_.randrange(1, 6)
        self.cells = [[decimals(random_) for _ in range(self.columns)] for _ in range(self.rows)]
        self.odd = random_.random() < 0.5
        self.chosen = []  # the columns of the request, if it names some
        self.unread = set()  # columns that are not coordinates

    def made(self):
        self._choose_columns()
        self._write_decimal_commas()
        self._fill_unread_columns()
        if self.damage(0.35):
            at = self.random.randrange(self.rows)
            self.cells[at][self.random.randrange(self.columns)] = self.random.choice(ODD)
            self.file.unclear_header = at == 0
        self._add_header()
        self._damage_rows()
        self.file.raw = self._damaged(self._text().encode())
        if self.file.plain and self.random.random() < 0.15:
            self.file.n = str(self.random.randrange(1, self.rows + 1))
            self.file.dim = str(self.random.randrange(1, self.columns - len(self.unread) + 1))
        return self.file

    def damage(self, probability):
        """Whether something odd happens here. Then the file is not plain."""
        happens = self.odd and self.random.random() < probability
        self.file.plain = self.file.plain and not happens
        return happens

    def _choose_format(self):
        r, file = self.random, self.file
        file.format = r.choice(["csv", "csv", "tsv", "space"])
        self.blanks = file.format == "space"
        if r.random() < 0.2:
            file.decimal = ","
        if file.format == "csv" and r.random() < 0.3:
            file.delimiter = r.choice([";", ";", "|", ":", "tab", ","])
            if (file.delimiter, file.decimal) == (",", ","):
                file.plain = False
        self.separator = file.separator or r.choice([" ", "  ", "\t", " \t", "   "])

    def _choose_columns(self):
        """Chooses the columns of index and label, and those of the coordinates."""
        r, file, columns = self.random, self.file, self.columns
        if columns > 1 and r.random() < 0.25:
            file.index = str(r.randrange(columns) if r.random() < 0.5 else 0)
        if columns > 2 and r.random() < 0.3:
            at = r.choice(
                [-1, -1, -1, -1, columns - 1, r.randrange(columns), -r.randrange(1, columns + 1)]
            )
            file.label = str(at)
        self.unread = {int(i) % columns for i in (file.index, file.label) if i != ""}
        if r.random() < 0.2:
            self.chosen = r.sample(range(columns), r.randrange(1, columns + 1))
            if self.unread & set(self.chosen):
                file.plain = False
            self.unread |= set(range(columns)) - set(self.chosen)
            file.columns = [str(i) for i in self.chosen]

    def _write_decimal_commas(self):
        if self.file.decimal != ",":
            return
        r = self.random
        self.cells = [[text.replace(".", ",") for text in row] for row in self.cells]
        if self.damage(0.1):
            odd = r.choice(["1.5", "1.000,5", "1,5,5"])
            self.cells[r.randrange(self.rows)][r.randrange(self.columns)] = odd
            self.file.unclear_header = True

    def _fill_unread_columns(self):
        """Writes labels and other texts into the columns that are not coordinates."""
        r = self.random
        for i in self.unread:
            for row in self.cells:
                row[i] = r.choice(LABELS) if r.random() < 0.8 else decimals(r)
                if self.blanks:
                    row[i] = row[i].replace(" ", "_") or "z"
                if self.damage(0.2):
                    row[i] = r.choice([*ODD, "a#b", "#", "# x", 'a"b', "a\rb", "a\fb", "a\vb"])
        if self.columns == len(self.unread):
            self.file.plain = False

    def _add_header(self):
        r, file = self.random, self.file
        if r.random() < 0.3:
            file.has_header = True
            file.header = r.choice(["", "1"])
            self.cells.insert(0, self._names())
        elif r.random() < 0.3:
            file.header = "0"

    def _names(self):
        """The cells of the header."""
        r, file = self.random, self.file
        names = [r.choice(NAMES) for _ in range(self.columns)]
        if r.random() < 0.1:
            names[r.randrange(self.columns)] = r.choice(NO_COORDINATES)
        read = set(range(self.columns)) - self.unread
        if not self.chosen and any(names[i] in NO_COORDINATES for i in read):
            file.plain = False
        if self.blanks:
            names = [name.replace(" ", "_") for name in names]
        if self.damage(0.4):
            names = [r.choice(ODD_NAMES) for _ in range(self.columns)]
            file.unclear_header = True
        if r.random() < 0.5:
            by_name(file, names, r)
        if self.damage(0.1):
            names = names[1:] or names
            file.unclear_header = True
        if self.damage(0.05):
            names.append("more")
        return names

    def _damage_rows(self):
        """Makes a row longer or shorter, or the first one odd."""
        r, cells = self.random, self.cells
        if self.damage(0.15):
            cells[r.randrange(len(cells))].append(r.choice(["9", "", "x"]))
        if self.columns > 1 and self.damage(0.15):
            at = r.randrange(len(cells))
            cells[at].pop()
            self.file.unclear_header = self.file.unclear_header or at == 0
        if self.damage(0.05):
            cells[0] = [r.choice(ODD) for _ in cells[0]]
            self.file.unclear_header = True

    def _text(self):
        """The table with quotes, blanks, comments and line ends."""
        r = self.random
        quoting = not self.blanks and r.random() < 0.3
        end = r.choice(["\n", "\n", "\n", "\r\n"])
        if self.damage(0.05):
            end = r.choice(["\r", "\r\r\n", "\n\r"])
        lines = [self.separator.join(self._cell(c, quoting) for c in row) for row in self.cells]
        if self.blanks:
            lines = [
                r.choice(["", "", " ", "\t "]) + line + r.choice(["", "", " ", " \t"])
                for line in lines
            ]
        for _ in range(r.choice([0, 0, 0, 1, 2])):
            comment = self._comment()
            lines.insert(r.randrange(len(lines) + 1), comment)
        last = end if r.random() < 0.8 else r.choice(["", "", end + end, " "])
        text = end.join(lines) + last
        return "\ufeff" + text if r.random() < 0.08 else text

    def _cell(self, text, quoting):
        r = self.random
        needs = any(c in text for c in ('"', "\n", self.separator.strip(" ") or " "))
        if not self.blanks and (needs or (quoting and r.random() < 0.5)) and not self.damage(0.1):
            text = '"' + text.replace('"', '""') + '"'
        if quoting and self.damage(0.05):
            text = r.choice(QUOTED_ODD)
        if r.random() < 0.05:
            tabs = self.file.format == "csv" and self.separator != "\t"
            tabs = tabs and not text.startswith('"')
            blank = r.choice([" ", "  ", "\t"] if tabs or self.damage(0.3) else [" ", "  "])
            text = r.choice([blank + text, text + blank, blank + text + blank])
        return text

    def _comment(self):
        """A line that is skipped, or an odd one."""
        r = self.random
        comment = r.choice(["# comment", "#", "#1,2", "  # 3 4", "", " ", "  ", '# "', "#x\ty"])
        odd = ["\t#x\t5", "\t", "\t\t", ",", ",,", " #", "\t#", '"#1"', "//", "%", ";"]
        return r.choice(odd) if self.damage(0.3) else comment

    def _damaged(self, raw):
        """The bytes, some of which may be inserted, changed or lost."""
        r, raw = self.random, bytearray(raw)
        if not self.damage(0.3):
            return bytes(raw)
        self.file.unclear_header = True
        for _ in range(r.randrange(1, 4)):
            at = r.randrange(len(raw) + 1)
            byte = r.choice(b"\",,\t \n\r#0123456789.eE+-;'_x")
            kind = r.randrange(4)
            if kind == 0:
                raw[at:at] = bytes([byte])
            elif kind == 1 and at < len(raw):
                raw[at] = byte
            elif kind == 2 and at < len(raw):
                del raw[at]
            elif kind == 3:
                del raw[at : at + r.randrange(1, 12)]
        return bytes(raw)
