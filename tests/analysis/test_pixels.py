"""Pictures as points: every pixel in order, and one line for what is no picture."""

import numpy as np
import pytest
from PIL import Image

from analysis.__main__ import main
from analysis.model.pixels import pixels

COLOURS = np.random.default_rng(3).integers(0, 256, (5, 7, 3), dtype=np.uint8)


def test_a_picture_becomes_a_row_for_each_pixel(tmp_path, capsys):
    Image.fromarray(COLOURS).save(tmp_path / "a.png")
    assert main(["pixels", str(tmp_path / "a.png"), str(tmp_path / "a.npy")]) == 0
    assert capsys.readouterr().out == f"{tmp_path}/a.npy: 35 × 3\n"
    points = np.load(tmp_path / "a.npy")
    assert points.dtype == np.uint8
    assert (points == COLOURS.reshape(35, 3)).all()


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("L", [(200, 200, 200), (0, 0, 0)]),
        ("1", [(255, 255, 255), (0, 0, 0)]),
        ("RGBA", [(200, 100, 50), (0, 1, 2)]),  # transparency is left out
        ("P", [(200, 100, 50), (0, 1, 2)]),
        ("CMYK", [(200, 100, 50), (0, 1, 2)]),
    ],
)
def test_other_colour_models_become_rgb(tmp_path, mode, expected):
    rgb = Image.fromarray(np.array([[(200, 100, 50), (0, 1, 2)]], dtype=np.uint8))
    if mode in ("L", "1"):
        image = Image.fromarray(np.array([[200, 0]], dtype=np.uint8)).convert(mode)
    else:
        image = rgb.quantize(2) if mode == "P" else rgb.convert(mode)
    if mode == "RGBA":
        image.putalpha(7)
    assert image.mode == mode
    image.save(tmp_path / "a.tiff")
    assert pixels(tmp_path / "a.tiff").tolist() == [list(colour) for colour in expected]


def _png(path):
    Image.fromarray(np.tile(COLOURS, (40, 40, 1))).save(path, format="PNG")


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda path: path.write_bytes(b""), "is no picture that Pillow can read"),
        (lambda path: path.write_bytes(b"1,2\n3,4\n"), "is no picture that Pillow can read"),
        (lambda path: path.write_bytes(path.read_bytes()[:-3000]), "is no picture that Pillow can"),
        (lambda path: path.write_bytes(path.read_bytes()[:20]), "is no picture that Pillow can"),
        (
            lambda path: Image.new("I;16", (2, 2)).save(path, format="PNG"),
            "has pixels of mode 'I;16' instead of 8-bit colours; save it as RGB",
        ),
        (
            lambda path: Image.new("RGB", (2, 2)).save(
                path, format="GIF", save_all=True, append_images=[Image.new("RGB", (2, 2), "red")]
            ),
            "has 2 frames; save one as a picture",
        ),
        (lambda path: path.unlink(), "No such file or directory"),
    ],
    ids=["empty", "text", "truncated", "header only", "16 bits", "animated", "absent"],
)
def test_what_is_no_picture_is_refused_in_one_line(tmp_path, capsys, spoil, message):
    path = tmp_path / "a.png"
    _png(path)
    spoil(path)
    assert main(["pixels", str(path), str(tmp_path / "a.npy")]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"{path}: {message}")
    assert said.count("\n") == 1
    assert not (tmp_path / "a.npy").exists()


def test_another_kind_of_output_is_refused(tmp_path, capsys):
    _png(tmp_path / "a.png")
    assert main(["pixels", str(tmp_path / "a.png"), str(tmp_path / "a.csv")]) == 2
    assert "a.csv: the file that is written is npy" in capsys.readouterr().err
