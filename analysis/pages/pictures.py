"""Figures as SVG within a page: text stays text, and the colours follow the page's theme."""

from __future__ import annotations

import base64
import io
import logging
import re

import matplotlib as mpl
from fontTools import subset
from markupsafe import Markup
from matplotlib import font_manager
from matplotlib.figure import Figure

from analysis.figures.style import COLOURS, FAINT, GREY, INK, RC, look

THEMED = {
    INK: "ink",
    GREY: "grey",
    FAINT: "faint",
    **{colour: f"hue{place}" for place, colour in enumerate(COLOURS)},
}
"""The colours of figures, and the page's variables that stand for them (templates/report.css)."""

MAPS = ("dims", "fastest")
"""Figures with text on coloured cells: they keep their white ground and their inks in the dark."""

_LETTERS = (
    *(range(0x20, 0x7F), range(0xA0, 0x180), range(0x370, 0x400), range(0x2010, 0x2060)),
    *(range(0x2070, 0x20A0), range(0x2190, 0x2270)),
)
"""What the page's font has: Latin, Greek, raised and lowered digits, arrows, operators. A browser
takes other letters from its own fonts."""

_DROPPED = re.compile(r"^.*?(?=<svg)|<!--.*?-->|<metadata>.*?</metadata>", re.DOTALL)
_STYLE = re.compile(r"<defs>\s*<style.*?</style>\s*</defs>", re.DOTALL)
_EMPTY_PATCH = re.compile(r'<g id="patch_\d+">\s*<path d="[^"]*" style="fill: none"/>\s*</g>')
_TAG = re.compile(r"<[^>]+>")
_NUMBER = re.compile(r"(\d\.\d\d)\d+")
_ID = re.compile(r'(\bid="|\bhref="#|url\(#)')
_ID_OF_TAG = re.compile(r' id="([^"]*)"')
_REFERRED = re.compile(r'(?:\bhref="#|url\(#)([^")]+)')
_COLOURED = re.compile(r' (fill|stroke)="(#\w{6})"')
_HEX = re.compile("|".join(THEMED), re.IGNORECASE)
_FONT = re.compile(r"font-family: [^;\"]*; ?")


def inline(figure: Figure, prefix: str) -> Markup:
    """The figure as an <svg> element without a size of its own. `prefix` sets its ids apart from
    those of other figures of the page."""
    file = io.StringIO()
    with look(), mpl.rc_context({"svg.fonttype": "none"}):
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    text = _STYLE.sub("", _DROPPED.sub("", file.getvalue()), count=1)
    text = _EMPTY_PATCH.sub("", text)
    needed = set(_REFERRED.findall(text))
    text = _TAG.sub(lambda tag: _tag(tag[0], prefix, needed), text)
    return Markup(re.sub(r">\s+<", "><", text))


def _tag(tag: str, prefix: str, needed: set[str]) -> str:
    """A tag with short numbers, the page's colours and, of ids, only the `needed` ones."""
    if tag.startswith("<svg"):
        box = re.search(r'viewBox="([^"]*)"', tag)[1]
        return f'<svg viewBox="{box}" aria-hidden="true" focusable="false">'
    tag = " ".join(tag.split())
    tag = _ID_OF_TAG.sub(lambda found: found[0] if found[1] in needed else "", tag)
    tag = _ID.sub(rf"\g<1>{prefix}-", _NUMBER.sub(r"\1", tag))
    # a variable is for styles, not for attributes
    tag = _COLOURED.sub(r' style="\1: \2"', tag)
    tag = _HEX.sub(lambda found: f"var(--{_variable(found[0])})", tag)
    return _FONT.sub("", tag)


def _variable(colour: str) -> str:
    return THEMED.get(colour) or THEMED[colour.upper()]


def font_css() -> str:
    """The figures' font as @font-face rules that need no file."""
    rules = []
    logging.getLogger("fontTools").setLevel(logging.ERROR)  # it names each table that it drops
    for weight in ("normal", "bold"):
        properties = font_manager.FontProperties(family=RC["font.family"], weight=weight)
        options = subset.Options(flavor="woff", hinting=False, notdef_outline=True)
        with subset.load_font(font_manager.findfont(properties), options) as font:
            chosen = subset.Subsetter(options)
            chosen.populate(unicodes=[letter for letters in _LETTERS for letter in letters])
            chosen.subset(font)
            file = io.BytesIO()
            subset.save_font(font, file, options)
        data = base64.b64encode(file.getvalue()).decode("ascii")
        rules.append(
            f'@font-face {{ font-family: "Figure"; font-weight: {weight}; '
            f"src: url(data:font/woff;base64,{data}) format('woff'); }}"
        )
    return "\n".join(rules)
