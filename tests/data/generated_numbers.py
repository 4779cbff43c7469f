"""Numbers as programs and people write them, and what stands in a file where a number should."""

from fractions import Fraction

import numpy as np


def words(text):
    return text.split()


CORNERS = words("""
    1e-45 1e-46 -1e-46 7.0064923e-46 7.0064924e-46 1.4e-45 1.17549435e-38 1.1754942e-38
    3.4028235e38 3.4028234663852886e38 -0 0.0 -0.0 .5 5. -.5 -5. 1E5 1e+5 1e-05 00012
    0000.5e0002 16777217 16777219 33554435 0.1 1e-400 -1e-400 0e999 0e-999 1e0 1.e1 .1e1
    123456789012345678901234567890 0.000000000000000000000000000000000000000000001
""")


def decimals(random_):
    """A number that every reader should read."""
    r = random_
    kind = r.randrange(22)
    if kind == 0:
        return str(r.randrange(-(10**6), 10**6))
    if kind == 1:
        return repr(r.uniform(-1, 1))
    if kind == 2:
        return f"{r.uniform(-1, 1) * 10.0 ** r.randrange(-30, 30):.{r.randrange(20)}e}"
    if kind == 3:
        return f"{r.randrange(10 ** r.randrange(1, 38))}"
    if kind == 4:
        return r.choice(CORNERS)
    if kind == 5:
        return f"{np.float32(r.gauss(0, 1)):.9g}"
    if kind == 6:
        return f"{r.gauss(0, 1e-40):.17g}"
    if kind == 7:  # halfway between two floats, or next to that
        bits = (
            r.randrange(0x00800000, 0x7F7FFFFF) if r.random() < 0.9 else r.randrange(1, 0x00800000)
        )
        low = Fraction(float(np.uint32(bits).view(np.float32)))
        high = Fraction(float(np.uint32(bits + 1).view(np.float32)))
        return tie_text((low + high) / 2, r)
    if kind == 8:
        return f"{r.choice(['', '-', '+'])}{r.random():.{r.randrange(1, 60)}f}"
    if kind == 9:
        return f"{r.uniform(0, 1):.{r.randrange(1, 12)}E}"
    if kind == 10:
        return "0" * r.randrange(1, 30) + str(r.randrange(1000)) + "." + "0" * r.randrange(30)
    return f"{r.gauss(0, 10):.{r.randrange(7)}f}"


def tie_text(tie, random_):
    """A number halfway between two floats, possibly with a digit that breaks the tie."""
    scale = 0
    numerator, denominator = tie.numerator, tie.denominator
    while denominator % 2 == 0 and scale < 60:
        numerator, denominator, scale = numerator * 5, denominator // 2, scale + 1
    if denominator != 1 or numerator > 10**60:
        return "1.000000059604644775390625"
    digits = str(numerator)
    text = f"{digits}e-{scale}" if scale else digits
    if random_.random() < 0.5:
        extra = random_.choice(["0000001", "1", "0"])
        text = f"{digits}.{extra}e-{scale}"
    return text


ODD = [
    *words("""
        nan NaN -nan inf -Infinity infinity +inf 1e39 -1e39 3.4028236e38 1e999 NA N/A null None
        ? - . + x 0x10 0x1p3 1_000 1d5 1e 1e+ e5 --1 +-1 -+1 ++1 1.2.3 1e5.0 1f 1L 1;2 #1 True
        1% $1 1-2 1/2 1+2j (1) [1] １２ ٣ −5 1e５ ½ ∞ 1,5 1,000
    """),
    "'1'",
    "",
    "1\xa0",
    "\xa01",
    "1\u20282",
    "1\u2009000",
    "1 000",
    "1 2",
    "1\t2",
    '1"',
    '"',
    '""',
    '1""2',
    "1\x0b",
    "\x0c1",
    "1\x00",
    "1\r",
]

QUOTED_ODD = [
    '"1"2',
    '"1"e3',
    '"-925730"7',
    '1"2"',
    '"1" "2"',
    '"1',
    '1"',
    '""1""',
    '"1""2"',
    "'1'",
    '" 1 "',
    '"1\n2"',
    '"1\r\n"',
    '"\t1"',
]
