"""Usage: device_syntax.py BUILD ARCHITECTURE

Runs CUDA's front end over every file that BUILD compiles by nvcc, for compute capability
ARCHITECTURE (75 for 7.5). A build for one GPU does not find what only the pass for another GPU
rejects: an instruction, a type, a branch of `#if __CUDA_ARCH__`. The list of files comes from
BUILD's compile_commands.json. A file takes seconds, and no code is generated.
"""

import json
import os
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path


def front_end_only(command, architecture):
    """The compile command for one architecture, ending after the front end."""
    words = shlex.split(command)
    nvcc = next(i for i, word in enumerate(words) if Path(word).name == "nvcc")  # skips ccache
    kept = [word for word in words[nvcc:] if not word.startswith("--generate-code=")]
    del kept[kept.index("-o") : kept.index("-o") + 2]
    kept.remove("-c")
    kept = ["-DLLOYD_SM90A=0" if word == "-DLLOYD_SM90A=1" else word for word in kept]
    generate = f"--generate-code=arch=compute_{architecture},code=sm_{architecture}"
    return [*kept, generate, "-ptx", "-fdevice-syntax-only", "-o", os.devnull]


def main(build, architecture):
    commands = json.loads(Path(build, "compile_commands.json").read_text())
    # In a build without CUDA, the host compiler reads these files.
    files = {c["file"]: c for c in commands if "nvcc" in c["command"] and c["file"].endswith(".cu")}
    if not files:
        print(
            f"{build} compiles no CUDA file: nothing to read for compute capability {architecture}"
        )
        return 0

    def read(entry):
        return subprocess.run(
            front_end_only(entry["command"], architecture),
            cwd=entry["directory"],
            capture_output=True,
            text=True,
            check=False,
        )

    with ThreadPoolExecutor(int(os.environ.get("JOBS") or os.cpu_count())) as pool:
        results = list(pool.map(read, files.values()))
    failed = [result for result in results if result.returncode != 0]
    for result in failed:
        print(result.stdout + result.stderr, file=sys.stderr)
    print(
        f"{len(files)} CUDA files for compute capability {architecture}: {len(failed)} with errors"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
