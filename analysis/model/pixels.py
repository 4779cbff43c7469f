"""Turns a picture into points for colour quantisation: one row (red, green, blue) per pixel."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
from PIL import Image

from analysis.model.files import RunError

COLOURS = ("1", "L", "LA", "P", "PA", "RGB", "RGBA", "CMYK", "YCbCr", "HSV")
"""Pillow's modes that convert to 8-bit RGB without clipping."""


def pixels(picture: Path) -> np.ndarray:
    """The pixels (n × 3, uint8) row by row, from the top left. Transparency is left out. Raises
    RunError for what is no picture, or one without 8-bit colours."""
    try:
        with Image.open(picture) as image:
            if getattr(image, "n_frames", 1) > 1:
                raise RunError(f"{picture}: has {image.n_frames} frames; save one as a picture")
            if image.mode not in COLOURS:
                raise RunError(
                    f"{picture}: has pixels of mode '{image.mode}' instead of 8-bit colours; save "
                    "it as RGB"
                )
            return np.asarray(image.convert("RGB")).reshape(-1, 3)
    except Image.DecompressionBombError as error:
        raise RunError(f"{picture}: {error}") from error
    except (OSError, SyntaxError, ValueError, EOFError, struct.error) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # no such file, no permission: the system's own words
        raise RunError(f"{picture}: is no picture that Pillow can read ({error})") from error


def write_pixels(picture: Path, out: Path) -> int:
    """Writes the pixels of `picture` to the npy file `out`; returns their number."""
    if out.suffix != ".npy":
        raise RunError(f"{out}: the file that is written is npy; end its name in .npy")
    points = pixels(picture)
    np.save(out, points)
    return len(points)
