"""CMakePresets.json: what IDEs and `cmake --preset` read."""

import json
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def test_cmake_lists_every_preset():
    presets = json.loads((ROOT / "CMakePresets.json").read_text())
    for kind in ("configure", "build", "test"):
        names = [each["name"] for each in presets[f"{kind}Presets"] if not each.get("hidden")]
        listed = subprocess.run(
            ["cmake", f"--list-presets={kind}"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        assert [line.split('"')[1] for line in listed.stdout.splitlines() if '"' in line] == names


def test_preset_without_cuda_configures(tmp_path):
    command = ["cmake", "--preset", "cpu", "-B", tmp_path, "-DLLOYD_TESTS=OFF"]
    subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    cache = (tmp_path / "CMakeCache.txt").read_text()
    assert "LLOYD_CUDA:UNINITIALIZED=OFF" in cache or "LLOYD_CUDA:BOOL=OFF" in cache
    assert (tmp_path / "build.ninja").exists()


def test_sanitizer_preset_has_the_options_of_make_test():
    presets = json.loads((ROOT / "CMakePresets.json").read_text())["configurePresets"]
    (asan,) = [each for each in presets if each["name"] == "asan"]
    script = (ROOT / "tools" / "test.sh").read_text()
    for name, value in asan["cacheVariables"].items():
        assert f"-D{name}={value}" in script
