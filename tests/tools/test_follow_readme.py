"""tools/follow_readme.py takes its commands from the README. Running them takes minutes and a bare
Debian; that they are found takes none.
"""

import importlib.util
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_way_leads_from_the_clone_to_own_data():
    spec = importlib.util.spec_from_file_location("follow", ROOT / "tools" / "follow_readme.py")
    follow = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(follow)
    commands = [text for _, text in follow.steps(README)]
    order = ["git clone ", "make", "make run ", "cat >my_data.yaml", "make run SPEC=my_data.yaml"]
    places = [next(i for i, text in enumerate(commands) if text.startswith(o)) for o in order]
    assert places == sorted(places)
    assert len(set(places)) == len(order)
    subprocess.run(["bash", "-n"], input=follow.script(README), text=True, check=True)
