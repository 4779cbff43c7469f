"""Packs runs as an artifact-evaluation committee wants them, and checks such a package."""

from __future__ import annotations

import gzip
import hashlib
import json
import multiprocessing
import os
import platform
import re
import shlex
import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import distribution
from pathlib import Path, PurePosixPath

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from analysis.figures import FIGURES, FORMATS, draw, write, wrong_name
from analysis.figures.paper import paper_for
from analysis.measures.points import gather
from analysis.model.ceilings import ceilings_file, nearest_file
from analysis.model.files import (
    RunError,
    folder_for,
    open_regular,
    printable,
    read_json,
    replacing,
)
from analysis.model.load import load_run
from analysis.model.run import Run
from analysis.pages import artifact_readme
from analysis.pages.every_table import write_tables
from analysis.pages.report import subject

ROOT = Path(__file__).resolve().parents[2]
SOFTWARE = (
    *("analysis/**/*.py", "analysis/pages/templates/*", "analysis/README.md", "data/published/*"),
    *("experiments/spec/figures.inc", "kernels/core/*.inc", "kernels/core/gpu_exchange.h"),
    *("LICENSE", "CITATION.cff"),
)
"""What figures and tables are made with, below ROOT."""
PACKAGES = ("numpy", "pandas", "scipy", "matplotlib", "jinja2", "msgspec")
"""What the analysis imports; they bring the others."""
SUMS, ABOUT = "SHA256SUMS", "artifact.json"
DRAWN = ("figures", "tables")
_CLASSIFIER = re.compile(r"Programming Language :: Python :: 3\.(\d+)")
_ABOUT = {
    **{"formats": [str], "width": str, "class": str, "software": {"*": str}},
    "runs": [{"folder": str, "figures": [str]}],
}


@dataclass(frozen=True)
class Look:
    """How the figures are drawn: as `figures --format … --width … --class …` does it."""

    formats: list[str]
    width: str | None = None
    document_class: str | None = None

    def options(self) -> list[str]:
        asked = {"--width": self.width, "--class": self.document_class}
        given = [word for name, value in asked.items() if value for word in (name, value)]
        return ["--format", ",".join(self.formats), *given]


@dataclass
class Verdict:
    """What a check found: faults, one a line; and what was right, in numbers."""

    faults: list[str] = field(default_factory=list)
    files: int = 0
    drawn: int = 0


def pack(runs: list[Run], out: Path, how: Look) -> Path:
    """Writes the artifact of `runs` to `out`: a folder that does not exist yet, or a .tar.gz.

    Everything is drawn from the packed rows. The same runs give the same bytes."""
    if not out.name.endswith(".tar.gz") and out.exists():
        raise RunError(f"{out}: exists already; name a new folder, or a file that ends in .tar.gz")
    for run in runs:
        if run.parts:
            parts = shlex.join(["run_experiment", "--merge", *map(str, run.parts)])
            raise RunError(
                f"{run.name}: an artifact takes whole runs, and this is {len(run.parts)} parts of "
                f"a sweep; merge them first: {printable(parts)} --out DIR"
            )
    with _place() as place:
        folders = _folders(runs)
        for run, folder in zip(runs, folders, strict=True):
            _copy_run(run, place / "runs" / folder)
        names = _each(_draw, [(place, place, folder, None, how) for folder in folders])
        _copy_software(place / "software")
        about = {
            "formats": how.formats,
            "width": how.width,
            "class": how.document_class,
            "software": _software(),
            "runs": [
                {"folder": folder, "figures": figures}
                for folder, figures in zip(folders, names, strict=True)
            ],
        }
        (place / ABOUT).write_text(json.dumps(about, indent=1) + "\n", "utf-8")
        packed = [load_run(place / "runs" / folder) for folder in folders]
        readme = artifact_readme.text(
            packed, folders, names, how.options(), _size(place), _pythons()
        )
        (place / "README.md").write_text(readme, "utf-8")
        sums = [f"{_digest(file)}  {file.relative_to(place)}\n" for file in _files(place)]
        (place / SUMS).write_text("".join(sums), "utf-8")
        folder_for(out.absolute().parent)
        if out.name.endswith(".tar.gz"):
            top = out.name.removesuffix(".tar.gz")
            return replacing(out, lambda file: _archive(place, top, file))
        shutil.copytree(place, out)
    return out


def check(path: Path) -> Verdict:
    """Whether every file has its checksum, and every figure and table is what the packed rows
    give. Raises RunError for what is no artifact."""
    found = Verdict()
    with _place() as place:
        _fetch(path, place)
        _check_sums(place, found)
        about = read_json(place / ABOUT, _ABOUT)
        if not about:
            raise RunError(f"{path}: has no {ABOUT}: not an artifact of this program")
        how = Look(about.get("formats") or [], about.get("width"), about.get("class"))
        again = place.parent / "again"
        runs = [(r.get("folder") or "", r.get("figures") or []) for r in about.get("runs") or []]
        known = {*FORMATS, *(file.name for file in place.glob("runs/*"))}
        named = {folder for folder, _ in runs} | {*how.formats}
        named |= {name for _, figures in runs for name in figures if wrong_name(name)}
        if named - known or not runs:
            unknown = ", ".join(sorted(named - known)) or "no run"
            raise RunError(f"{path}: {ABOUT} names {unknown}, which is not there")
        _each(_draw, [(place, again, *run, how) for run in runs])
        _compare(place, again, found, about.get("software") or {})
    return found


@contextmanager
def _place() -> Iterator[Path]:
    """A new folder for an artifact, in another new folder: a run looks for ceilings above itself
    (model.ceilings.nearest_file), and must not find any outside of the artifact."""
    with tempfile.TemporaryDirectory(prefix="lloydbench-") as above:
        place = Path(above) / "in" / "artifact"
        place.mkdir(parents=True)
        yield place


def _copy_run(run: Run, folder: Path) -> None:
    """Copies the files of a run, except its lock and what was drawn from it, and the files that it
    shares with its neighbours."""
    folder.mkdir(parents=True)
    for file in _files(run.path):
        below = file.relative_to(run.path)
        if below.parts[0] in (*DRAWN, ".lock"):
            continue
        (folder / below).parent.mkdir(parents=True, exist_ok=True)
        with open_regular(file) as source, (folder / below).open("wb") as target:
            shutil.copyfileobj(source, target)
    # A run beside a GPU may know only its CPU's ceilings.
    ceilings = (ceilings_file(run.path, run.environment, device) for device in ("gpu", "cpu"))
    for name, file in (
        ("ceilings.json", next(filter(None, ceilings), None)),
        ("parents.json", nearest_file(run.path, "parents.json")),
    ):
        if file and not (folder / name).exists():
            shutil.copyfile(file, folder / name)


def _copy_software(folder: Path) -> None:
    for pattern in SOFTWARE:
        for file in ROOT.glob(pattern):
            target = folder / file.relative_to(ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)
    pins = [f"{name}=={version}\n" for name, version in _software().items() if name != "python"]
    # for claims.toml, which later Pythons can read themselves
    pins.append('tomli; python_version < "3.11"\n')
    (folder / "requirements.txt").write_text("".join(pins), "utf-8")


def _draw(place: Path, out: Path, folder: str, names: list[str] | None, how: Look) -> list[str]:
    """Draws the figures `names` (None: those of the spec, else all) and writes the tables of a
    packed run into `out`; returns the names of those that could be drawn."""
    run = load_run(place / "runs" / folder)
    if names is None:
        asked = [name for name in run.spec.get("figures") or [] if not wrong_name(name)]
        names = asked or list(FIGURES)
    width, environment = paper_for(how.width, how.document_class)
    data, about = gather([run], run.baseline), subject([run])
    drawn = []
    for name in names:
        drawing = draw(name, data, about, width)
        if drawing.figure is not None:
            write(drawing, out / "figures" / folder, how.formats, environment)
            drawn.append(name)
    write_tables(run, out / "tables" / folder)
    return drawn


def _each(work, arguments: list[tuple]) -> list:
    """`work` of each, by as many processes as there are cores."""
    jobs = min(len(os.sched_getaffinity(0)), len(arguments))
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(max(jobs, 1), mp_context=context) as pool:
        return list(pool.map(work, *zip(*arguments, strict=True)))


def _software() -> dict[str, str]:
    """Python, PACKAGES and all that these need, each with its version here."""
    found: dict[str, str] = {}
    wanted = [*PACKAGES]
    while wanted:
        name = canonicalize_name(wanted.pop())
        if name in found:
            continue
        package = distribution(name)
        found[name] = package.version
        needed = map(Requirement, package.requires or [])
        wanted += [n.name for n in needed if not n.marker or n.marker.evaluate({"extra": ""})]
    return {"python": platform.python_version(), **dict(sorted(found.items()))}


def _pythons() -> str:
    """The versions of Python for which all PACKAGES, as they are installed here, are made. Newer
    ones may have no wheels of these."""
    minors = None
    for name in PACKAGES:
        classifiers = distribution(name).metadata.get_all("Classifier") or []
        found = {int(m[1]) for each in classifiers if (m := _CLASSIFIER.fullmatch(each))}
        if found:  # some say only that they are for Python 3
            minors = found if minors is None else minors & found
    if not minors:
        return platform.python_version()
    return " to ".join(f"3.{minor}" for minor in sorted({min(minors), max(minors)}))


def _folders(runs: list[Run]) -> list[str]:
    """The spec's name for each run; of several with one name numbered."""
    names: list[str] = []
    for run in runs:
        # a name is anything: it may not lead out of the artifact
        name = re.sub(r"[^A-Za-z0-9._-]", "_", run.name)[:80].lstrip(".") or "run"
        turn = 2
        while name in names:
            name, turn = f"{name.removesuffix(f'-{turn - 1}')}-{turn}", turn + 1
        names.append(name)
    return names


def _files(place: Path) -> list[Path]:
    """Every regular file. Links are not followed: in a stranger's folder they lead anywhere."""
    found = [Path(folder) / name for folder, _, names in os.walk(place) for name in names]
    return sorted(file for file in found if file.is_file() and not file.is_symlink())


def _size(place: Path) -> int:
    return sum(file.stat().st_size for file in _files(place))


def _digest(file: Path) -> str:
    with file.open("rb") as source:
        digest = hashlib.sha256()
        while part := source.read(1 << 20):
            digest.update(part)
    return digest.hexdigest()


def _archive(place: Path, top: str, out: Path) -> None:
    """A tar of `place` as `top`/…, without dates and owners."""
    with (
        out.open("wb") as raw,
        gzip.GzipFile("", "wb", 9, raw, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for file in _files(place):
            entry = tarfile.TarInfo(f"{top}/{file.relative_to(place)}")
            entry.size, entry.mode = file.stat().st_size, 0o644
            with file.open("rb") as source:
                tar.addfile(entry, source)


def _fetch(path: Path, place: Path) -> None:
    """Copies the regular files of an artifact, folder or .tar.gz, to `place`."""
    if path.is_dir():
        for file in _files(path):
            if "__pycache__" in file.parts:
                continue
            target = place / file.relative_to(path)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)
        return
    try:
        with tarfile.open(path, "r:gz") as tar:
            for entry in tar:
                parts = PurePosixPath(entry.name).parts[1:]
                if not entry.isreg() or not parts or ".." in parts or entry.name.startswith("/"):
                    continue
                target = place.joinpath(*parts)
                target.parent.mkdir(parents=True, exist_ok=True)
                with target.open("wb") as out:
                    shutil.copyfileobj(tar.extractfile(entry), out)
    except (tarfile.TarError, EOFError, gzip.BadGzipFile) as error:
        raise RunError(f"{path}: neither a folder nor a whole .tar.gz ({error})") from None


def _check_sums(place: Path, found: Verdict) -> None:
    if not (place / SUMS).is_file():
        found.faults.append(f"{SUMS}: missing")
        return
    listed = {}
    for line in (place / SUMS).read_text("utf-8", "replace").splitlines():
        digest, _, name = line.partition("  ")
        listed[name] = digest
    there = {str(file.relative_to(place)): file for file in _files(place)}
    for name in sorted({*listed, *there} - {SUMS}):
        if name not in there:
            found.faults.append(f"{name}: missing")
        elif name not in listed:
            found.faults.append(f"{name}: not in {SUMS}")
        elif _digest(there[name]) != listed[name]:
            found.faults.append(f"{name}: not the file that was packed (checksum)")
        else:
            found.files += 1


def _compare(place: Path, again: Path, found: Verdict, made_with: dict[str, str]) -> None:
    here = _software()
    others = [
        f"{name} {made_with.get(name, 'of an unknown version')}"
        for name in sorted({*here, *made_with})
        if made_with.get(name) != here.get(name)
    ]
    differs = "differs from what the packed rows give"
    if others:
        differs += f" (drawn with {', '.join(others)}; install software/requirements.txt)"
    for kind in DRAWN:
        old, new = (
            {str(f.relative_to(base)): f for f in _files(base / kind)} for base in (place, again)
        )
        for name in sorted({*old, *new}):
            if name not in old or name not in new:
                where = "not packed" if name in new else "not made by the packed rows"
                found.faults.append(f"{name}: {where}")
            elif old[name].read_bytes() != new[name].read_bytes():
                found.faults.append(f"{name}: {differs}")
            else:
                found.drawn += 1
