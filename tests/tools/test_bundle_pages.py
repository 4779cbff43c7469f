"""The pages of the bundle: every relative link in them leads somewhere."""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMMAND = re.compile(r'bundle_pages\.py "\$stage" (.*?)\n(?! )', re.DOTALL)


def pages_of_the_bundle():
    """The pages that tools/bundle.sh names, as the shell expands them."""
    (words,) = COMMAND.findall((ROOT / "tools" / "bundle.sh").read_text())
    listed = subprocess.run(
        ["bash", "-c", f"printf '%s\\n' {words}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return listed.stdout.split()


def test_every_relative_link_of_a_bundled_page_leads_somewhere(tmp_path):
    pages = pages_of_the_bundle()
    assert {"README.md", "docs/spec.md", "kernels/external/README.md"} <= set(pages)
    tool = ROOT / "tools" / "bundle_pages.py"
    subprocess.run([sys.executable, tool, tmp_path, *pages], check=True)
    checked = 0
    for page in pages:
        text = (tmp_path / page).read_text()
        for target in re.findall(r"\]\(([^)\s#]+)", text):
            if "://" not in target:
                assert ((tmp_path / page).parent / target).exists(), (page, target)
                checked += 1
    assert checked > 50
    readme = (tmp_path / "README.md").read_text()
    assert "](docs/spec.md)" in readme
    assert re.search(r"\]\(data/recorded/[\w-]+/ladder/figures/speedup\.png\)", readme)
    assert "and a notebook for pandas" in readme  # the bundle does not have the notebook
