"""Figures as PGF, which LaTeX sets in the document's own letters.

Matplotlib's own backend runs LaTeX to measure text, and takes text for LaTeX. Here text is measured
as in every other format, and is plain: the same rows give the same file on every machine. Each text
is anchored where it was aligned, so that letters of another width move nothing."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.backends.backend_mixed import MixedModeRenderer
from matplotlib.backends.backend_pgf import RendererPgf
from matplotlib.figure import Figure
from matplotlib.text import Text
from PIL import Image

from analysis.figures.style import look
from analysis.figures.tex import tex
from analysis.figures.typeset import text_width
from analysis.model.files import replacing

DPI = 300
"""Of the parts that are pictures."""
_HEADER = r"""%% \usepackage{pgf}
%% \input{NAME.pgf}
%% Pictures that belong to it (NAME-img0.png) must be where \graphicspath looks.
"""


def write(figure: Figure, stem: Path) -> list[Path]:
    """Writes stem.pgf and its pictures, stem-img0.png and so on; returns their paths."""
    with look():
        text, pictures = _drawn(figure, stem.name)
    paths = [stem.with_name(f"{stem.name}.pgf")]
    replacing(paths[0], lambda file: file.write_text(text, "utf-8"))
    for name, pixels in pictures.items():
        paths.append(stem.with_name(name))
        replacing(paths[-1], lambda file, pixels=pixels: Image.fromarray(pixels).save(file))
    return paths


def floating(figure: Figure, name: str, formats: Sequence[str], environment: str) -> str:
    """LaTeX's `environment` (figure or figure*) with the caption that a figure for a paper leaves
    to it."""
    use = rf"\input{{{name}.pgf}}" if "pdf" not in formats else rf"\includegraphics{{{name}.pdf}}"
    lines = [
        rf"\begin{{{environment}}}",
        r"  \centering",
        f"  {use}",
        rf"  \caption{{{tex(figure.caption)}}}",
        rf"  \label{{fig:{name}}}",
        rf"\end{{{environment}}}",
    ]
    return "\n".join(lines) + "\n"


def _drawn(figure: Figure, name: str) -> tuple[str, dict[str, np.ndarray]]:
    out = io.StringIO()
    width, height = figure.get_size_inches()
    own_dpi = figure.dpi
    figure.dpi = DPI
    try:
        figure.draw_without_rendering()  # makes the ticks' labels
        renderer = _Renderer(figure, out, name)
        figure.draw(MixedModeRenderer(figure, width, height, DPI, renderer))
    finally:
        figure.dpi = own_dpi
    lines = [
        _HEADER.replace("NAME", name).rstrip(),
        r"\begingroup%",
        r"\makeatletter%",
        r"\begin{pgfpicture}%",
        rf"\pgfpathrectangle{{\pgfpointorigin}}{{\pgfqpoint{{{width:f}in}}{{{height:f}in}}}}%",
        r"\pgfusepath{use as bounding box, clip}%",
        out.getvalue() + r"\end{pgfpicture}%",
        r"\makeatother%",
        r"\endgroup%",
    ]
    return "\n".join(lines) + "\n", renderer.pictures


class _Renderer(RendererPgf):
    def __init__(self, figure: Figure, out: io.StringIO, name: str):
        super().__init__(figure, out)
        self.pictures: dict[str, np.ndarray] = {}
        self._name = name
        # of a text of several lines a renderer is given the lines, and the text's own font
        self._texts = {id(text.get_fontproperties()): text for text in figure.findobj(Text)}

    def get_text_width_height_descent(self, s, prop, ismath):
        size = prop.get_size_in_points()
        width = text_width(s, size, prop.get_weight()) * self.dpi
        # of DejaVu Sans, in which everything is laid out
        height, descent = (size * part / 72 * self.dpi for part in (0.93, 0.2))
        return width, height, descent

    def draw_text(self, gc, x, y, s, prop, angle, ismath=False, mtext=None):
        size = prop.get_size_in_points()
        owner = mtext or self._texts.get(id(prop))
        sides = {"left": "left", "right": "right", "center": ""}
        across, up = "left", "base"
        if mtext and (angle == 0 or mtext.get_rotation_mode() == "anchor"):
            place = mtext.get_transform().transform(mtext.get_unitless_position())
            x, y = place
            across = sides[mtext.get_horizontalalignment()]
            ups = {"top": "top", "bottom": "bottom", "baseline": "base", "center": ""}
            up = ups.get(mtext.get_verticalalignment(), "base")
        elif owner and angle == 0:
            across = sides[owner._get_multialignment()]
            x += {"left": 0, "right": 1, "": 0.5}[across] * text_width(s, size) * self.dpi
        self._line(r"\begin{pgfscope}")
        self._print_pgf_clip(gc)
        rgb = ",".join(f"{part:f}" for part in gc.get_rgb()[:3])
        self._line(rf"\definecolor{{textcolor}}{{rgb}}{{{rgb}}}")
        bold = r"\bfseries" if prop.get_weight() == "bold" else ""
        font = rf"\fontsize{{{size:g}}}{{{1.2 * size:g}}}{bold}\selectfont"
        where = [f"x={x / self.dpi:f}in", f"y={y / self.dpi:f}in", across, up]
        where += [f"rotate={angle:f}"] if angle else []
        self._line(
            rf"\pgftext[{','.join(part for part in where if part)}]"
            rf"{{\color{{textcolor}}{font}{{}}{tex(s)}}}"
        )
        self._line(r"\end{pgfscope}")

    def draw_image(self, gc, x, y, im, transform=None):
        name = f"{self._name}-img{len(self.pictures)}.png"
        self.pictures[name] = np.array(im[::-1])
        height, width = (size / self.dpi for size in im.shape[:2])
        self._line(r"\begin{pgfscope}")
        self._print_pgf_clip(gc)
        self._line(rf"\pgfsys@transformshift{{{x / self.dpi:f}in}}{{{y / self.dpi:f}in}}")
        self._line(
            r"\pgftext[left,bottom]"
            rf"{{\includegraphics[width={width:f}in,height={height:f}in]{{{name}}}}}"
        )
        self._line(r"\end{pgfscope}")

    def _line(self, text: str) -> None:
        self.fh.write(f"{text}%\n")
