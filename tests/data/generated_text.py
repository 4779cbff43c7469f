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
    r = random_
    file = File()
    file.format = r.choice(["csv", "csv", "tsv", "space"])
    blanks = file.format == "space"
    if r.random() < 0.2:
        file.decimal = ","
    if file.format == "csv" and r.random() < 0.3:
        file.delimiter = r.choice([";", ";", "|", ":", "tab", ","])
        if (file.delimiter, file.decimal) == (",", ","):
            file.plain = False
    separator = file.separator or r.choice([" ", "  ", "\t", " \t", "   "])
    rows, columns = r.randrange(1, 7), r.randrange(1, 6)
    cells = [[decimals(r) for _ in range(columns)] for _ in range(rows)]
    odd = r.random() < 0.5

    def damage(probability):
        happens = odd and r.random() < probability
        file.plain = file.plain and not happens
        return happens

    if columns > 1 and r.random() < 0.25:
        file.index = str(r.randrange(columns) if r.random() < 0.5 else 0)
    if columns > 2 and r.random() < 0.3:
        at = r.choice(
            [-1, -1, -1, -1, columns - 1, r.randrange(columns), -r.randrange(1, columns + 1)]
        )
        file.label = str(at)
    unread = {int(i) % columns for i in (file.index, file.label) if i != ""}
    chosen = []
    if r.random() < 0.2:
        chosen = r.sample(range(columns), r.randrange(1, columns + 1))
        if unread & set(chosen):
            file.plain = False
        unread |= set(range(columns)) - set(chosen)
        file.columns = [str(i) for i in chosen]
    if file.decimal == ",":
        for row in cells:
            for i in range(columns):
                row[i] = row[i].replace(".", ",")
        if damage(0.1):
            cells[r.randrange(rows)][r.randrange(columns)] = r.choice(["1.5", "1.000,5", "1,5,5"])
            file.unclear_header = True
    for i in unread:
        for row in cells:
            row[i] = r.choice(LABELS) if r.random() < 0.8 else decimals(r)
            if blanks:
                row[i] = row[i].replace(" ", "_") or "z"
            if damage(0.2):
                row[i] = r.choice([*ODD, "a#b", "#", "# x", 'a"b', "a\rb", "a\fb", "a\vb"])
    if columns == len(unread):
        file.plain = False
    if damage(0.35):
        at = r.randrange(rows)
        cells[at][r.randrange(columns)] = r.choice(ODD)
        file.unclear_header = at == 0
    if r.random() < 0.3:
        file.has_header = True
        file.header = r.choice(["", "1"])
        names = [r.choice(NAMES) for _ in range(columns)]
        if r.random() < 0.1:
            names[r.randrange(columns)] = r.choice(NO_COORDINATES)
        if not chosen and any(
            names[i] in NO_COORDINATES for i in range(columns) if i not in unread
        ):
            file.plain = False
        if blanks:
            names = [name.replace(" ", "_") for name in names]
        if damage(0.4):
            names = [r.choice(ODD_NAMES) for _ in range(columns)]
            file.unclear_header = True
        if r.random() < 0.5:
            by_name(file, names, r)
        if damage(0.1):
            names = names[1:] or names
            file.unclear_header = True
        if damage(0.05):
            names.append("more")
        cells.insert(0, names)
    elif r.random() < 0.3:
        file.header = "0"
    if damage(0.15):
        cells[r.randrange(len(cells))].append(r.choice(["9", "", "x"]))
    if columns > 1 and damage(0.15):
        at = r.randrange(len(cells))
        cells[at].pop()
        file.unclear_header = file.unclear_header or at == 0
    if damage(0.05):
        cells[0] = [r.choice(ODD) for _ in cells[0]]
        file.unclear_header = True

    quoting = not blanks and r.random() < 0.3

    def cell(text):
        needs = any(c in text for c in ('"', "\n", separator.strip(" ") or " "))
        if not blanks and (needs or (quoting and r.random() < 0.5)) and not damage(0.1):
            text = '"' + text.replace('"', '""') + '"'
        if quoting and damage(0.05):
            text = r.choice(QUOTED_ODD)
        if r.random() < 0.05:
            tabs = file.format == "csv" and separator != "\t" and not text.startswith('"')
            blank = r.choice([" ", "  ", "\t"] if tabs or damage(0.3) else [" ", "  "])
            text = r.choice([blank + text, text + blank, blank + text + blank])
        return text

    end = r.choice(["\n", "\n", "\n", "\r\n"])
    if damage(0.05):
        end = r.choice(["\r", "\r\r\n", "\n\r"])
    lines = [separator.join(cell(c) for c in row) for row in cells]
    if blanks:
        lines = [
            r.choice(["", "", " ", "\t "]) + line + r.choice(["", "", " ", " \t"]) for line in lines
        ]
    for _ in range(r.choice([0, 0, 0, 1, 2])):
        comment = r.choice(["# comment", "#", "#1,2", "  # 3 4", "", " ", "  ", '# "', "#x\ty"])
        if damage(0.3):
            comment = r.choice(
                ["\t#x\t5", "\t", "\t\t", ",", ",,", " #", "\t#", '"#1"', "//", "%", ";"]
            )
        lines.insert(r.randrange(len(lines) + 1), comment)
    text = end.join(lines) + (end if r.random() < 0.8 else r.choice(["", "", end + end, " "]))
    if r.random() < 0.08:
        text = "\ufeff" + text
    raw = bytearray(text.encode())
    if damage(0.3):
        file.unclear_header = True
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
    file.raw = bytes(raw)
    if file.plain and r.random() < 0.15:
        file.n = str(r.randrange(1, rows + 1))
        file.dim = str(r.randrange(1, columns - len(unread) + 1))
    return file
