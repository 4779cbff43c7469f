"""Compares the readers of data files with numpy and pandas on generated files.

    python tests/data/compare_readers.py build/tests/data/read_files --files 30000 --jobs 2 --seed 1

A grammar generates files that programs and people might write: odd, but plausible. The reader must
return exactly the floats that numpy and pandas read, each the nearest to the decimal number. Or it
must refuse the file, with a line and column in it. It must read a file without odd content. Prints
the counts, and each difference with the bytes of its file. The exit status is 1 if there is a
difference.
"""

import argparse
import collections
import multiprocessing
import os
import random
import select
import shutil
import subprocess
import sys
import tempfile
import time
import warnings

from generated_binary import npy_file, npz_file, vecs_file
from generated_text import text_file
from reader_verdict import judge

BATCH = 200  # files per batch of requests


class Reader:
    """The program under test. Restarts it if it dies or hangs."""

    def __init__(self, program):
        self.program = program
        self.process = None

    def start(self):
        self.process = subprocess.Popen(
            [self.program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        self.buffer = b""

    def stop(self):
        if self.process:
            self.process.kill()
            self.process.communicate()
            self.process = None

    def line(self, seconds):
        deadline = time.monotonic() + seconds
        while b"\n" not in self.buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                return None
            block = os.read(self.process.stdout.fileno(), 1 << 16)
            if not block:
                return None
            self.buffer += block
        line, self.buffer = self.buffer.split(b"\n", 1)
        return line.decode("utf-8")

    def ask(self, requests):
        """The answers. None for a request during which the program died or hung."""
        answers = []
        while len(answers) < len(requests):
            if self.process is None:
                self.start()
            rest = requests[len(answers) :]
            try:
                self.process.stdin.write("".join(rest).encode())
                self.process.stdin.flush()
            except BrokenPipeError:
                pass
            for _ in rest:
                answer = self.line(20)
                answers.append(answer)
                if answer is None:
                    self.stop()
                    break
        return answers


def run(program, seed, first, count, shown):
    """Judges `count` files of a seed from `first`. A file depends only on seed and number."""
    folder = tempfile.mkdtemp(
        prefix="readers-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None
    )
    reader = Reader(program)
    counts, differences = collections.Counter(), []
    try:
        warnings.simplefilter("ignore")  # warnings about empty files
        for begin in range(first, first + count, BATCH):
            files, requests = [], []
            for number in range(begin, min(begin + BATCH, first + count)):
                r = random.Random(f"{seed}/{number}")
                make = r.choices(
                    [text_file, npy_file, npz_file, vecs_file], [0.77, 0.1, 0.07, 0.06]
                )[0]
                file = make(r)
                path = os.path.join(
                    folder, f"{number - begin}.{'txt' if file.format == 'space' else file.format}"
                )
                with open(path, "wb") as out:
                    out.write(file.raw)
                files.append((number, file))
                fields = [path, file.format, file.header, file.index, file.label, file.n, file.dim]
                fields += [file.delimiter, file.decimal, "\x1f".join(file.columns), file.array]
                requests.append("\t".join(fields) + "\n")
            for (number, file), answer in zip(files, reader.ask(requests), strict=True):
                if not file.raw:
                    file.plain = False
                result, difference = judge(file, answer)
                counts[result] += 1
                if difference and len(differences) < shown:
                    differences.append((number, result, difference, file))
    finally:
        reader.stop()
        shutil.rmtree(folder)
    return counts, differences


def compare(program, files, jobs=1, seed=1, shown=10, first=0):
    """The counts of the results, and the first differences."""
    share = max(1, min(5000, -(-files // jobs)))
    parts = [
        (program, seed, at, min(share, first + files - at), shown)
        for at in range(first, first + files, share)
    ]
    counts, differences = collections.Counter(), []
    if jobs == 1:
        results = (run(*part) for part in parts)
    else:
        pool = multiprocessing.get_context("fork").Pool(jobs)
        results = pool.imap_unordered(run_part, parts)
    for done, (part_counts, part_differences) in enumerate(results, 1):
        counts.update(part_counts)
        differences += part_differences
        if len(parts) > 1:
            print(f"{done} of {len(parts)} parts, {len(differences)} differences", file=sys.stderr)
    return counts, differences


def run_part(part):
    return run(*part)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("program", help="read_files, of build/tests/data")
    parser.add_argument("--files", type=int, default=30_000)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first file")
    parser.add_argument("--show", type=int, default=10, help="differences to show of each part")
    options = parser.parse_args()
    started = time.monotonic()
    counts, differences = compare(
        os.path.abspath(options.program),
        options.files,
        options.jobs,
        options.seed,
        options.show,
        options.first,
    )
    for number, result, difference, file in sorted(differences, key=lambda d: d[0])[
        : 10 * options.show
    ]:
        keys = {k: v for k, v in vars(file).items() if k != "raw" and v != ""}
        print(f"file {number}: {result}: {difference}\n  {keys}\n  {file.raw!r}")
    seconds = time.monotonic() - started
    total = sum(counts.values())
    print(f"{total:,} files in {seconds:.0f} s ({total / seconds:,.0f} a second)")
    for result, count in counts.most_common():
        print(f"  {count:>9,} {result}")
    bad = {"died or hung", "refused without need", "differs", "numpy refuses"}
    failed = len(differences) or sum(counts[word] for word in bad)
    print(f"{failed} differences" if failed else "no difference")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
