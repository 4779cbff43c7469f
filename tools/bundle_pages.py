"""Copies pages and their pictures into a bundle: bundle_pages.py STAGE PAGE…

A link to a file that the bundle does not have becomes its text.
"""

import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")


def copy(stage: Path, pages: list[str]) -> None:
    for page in pages:
        copy_file(ROOT / page, stage / page)
        for picture, _, target in LINK.findall((ROOT / page).read_text("utf-8")):
            if picture and "://" not in target:
                copy_file(ROOT / Path(page).parent / target, stage / Path(page).parent / target)
    # after all of them are there, because they link to each other
    for page in pages:
        text = (stage / page).read_text("utf-8")
        (stage / page).write_text(without_dead_links(text, (stage / page).parent), "utf-8")


def copy_file(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


def without_dead_links(text: str, folder: Path) -> str:
    """The text of a page in `folder`, without its links to files that do not exist."""

    def checked(link: re.Match[str]) -> str:
        _, words, target = link.groups()
        path = target.partition("#")[0]
        exists = "://" in target or not path or (folder / path).exists()
        return link[0] if exists else words

    return LINK.sub(checked, text)


if __name__ == "__main__":
    copy(Path(sys.argv[1]), sys.argv[2:])
