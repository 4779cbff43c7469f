"""The answers that a run kept (`run_experiment --save labels,centroids`)."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import quote

import numpy as np
import pandas as pd

from analysis.model.files import RunError, open_regular
from analysis.model.run import Run

FOLDER = "answers"
PARTS = ("labels", "centroids")
_HEADER = re.compile(
    rb"\{'descr': '(\S{1,9})', 'fortran_order': False, 'shape': \(([\d, ]{1,40})\), \}\s*"
)
_TYPES = {"labels": ("|u1", "<u2", "<i4"), "centroids": ("<f4", "<f8")}


@dataclass(frozen=True)
class Answer:
    """The answer of a point. A part that was not kept is None.

    `labels` (n) are those of the last assignment, `centroids` (K, dim) those of the update after
    it. For a batch of problems, both have a first axis of its size."""

    labels: np.ndarray | None
    centroids: np.ndarray | None


class Answers(Mapping[str, Answer]):
    """The answers of a run by point id. Each is read when it is asked for."""

    def __init__(self, run: Run) -> None:
        folders = [directory / FOLDER for directory in run.directories]
        for folder in folders:
            if folder.is_symlink():
                raise RunError(f"{folder}: is a link, and links in a run are not followed")
        self._files = {
            file.name: file for folder in folders if folder.is_dir() for file in folder.iterdir()
        }
        points = [rows.drop_duplicates("point") for rows in (run.measurements, run.plan)]
        rows = pd.concat(
            [part[["point", "batch", "n", "k", "dim"]] for part in points if len(part)]
        )
        rows = rows.drop_duplicates("point").dropna()
        self._sizes = {
            str(point): (int(batch), int(n), int(k), int(dim))
            for point, batch, n, k, dim in rows.itertuples(index=False)
            if self.parts(str(point))
        }

    def __getitem__(self, point: str) -> Answer:
        batch, n, k, dim = self._sizes[point]
        first = () if batch == 1 else (batch,)
        labels = self._read(point, "labels", (*first, n))
        centroids = self._read(point, "centroids", (*first, k, dim))
        if labels is not None and not (labels.min() >= 0 and labels.max() < k):
            file = self._files[_file_name(point, "labels")]
            raise RunError(f"{file}: has labels outside of 0 to {k - 1}")
        return Answer(labels, centroids)

    def __iter__(self) -> Iterator[str]:
        return iter(self._sizes)

    def __len__(self) -> int:
        return len(self._sizes)

    def parts(self, point: str) -> list[str]:
        """The parts of a point's answer that were kept."""
        return [part for part in PARTS if _file_name(point, part) in self._files]

    def _read(self, point: str, part: str, shape: tuple[int, ...]) -> np.ndarray | None:
        path = self._files.get(_file_name(point, part))
        if path is None:
            return None
        with open_regular(path) as file:
            start = file.read(10)
            header = _HEADER.fullmatch(file.read(int.from_bytes(start[8:], "little")))
            if start[:8] != b"\x93NUMPY\x01\x00" or not header:
                raise RunError(f"{path}: no npy file of a saved answer; delete it")
            kind = header[1].decode()
            given = tuple(map(int, header[2].replace(b",", b" ").split()))
            if given != shape or kind not in _TYPES[part]:
                raise RunError(
                    f"{path}: has shape {given} and type {kind}, not the {part} of {shape}; "
                    "delete it"
                )
            data = file.read()
        needed = math.prod(shape) * np.dtype(kind).itemsize
        if len(data) != needed:
            raise RunError(f"{path}: has {len(data)} of {needed} B; delete it")
        return np.frombuffer(data, kind).reshape(shape)


def _file_name(point: str, part: str) -> str:
    name = quote(point, safe="/:+").replace("/", ",").replace(":", "=")
    return f"{name},{part}.npy"


def answers(run: Run) -> Answers:
    """The answers that `run` kept, by point id; empty if it kept none."""
    return Answers(run)
