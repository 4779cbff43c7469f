"""Speaks the protocol of kernels/external/README.md, for external versions in Python.

A version's file defines a class with `prepare`, `run` and `fetch`, and ends with

    if __name__ == "__main__":
        lloydbench_external.main(MyVersion, name="python_mine", …)

A new `MyVersion()` is made for each problem. It has three methods:

prepare(problem)  allocates and changes the layout. problem has n, dim, k, batch, precision
                  ("fp32"), iterations, tolerance, min_changes, points (n × dim float32),
                  centroids (k × dim float32), the tunables (threads, …), device (CUDA index),
                  devices (the GPUs to use, gpus of them, device first) and memory_bytes (free, or
                  None). It is timed from outside, unless it sets self.setup_ms, because it also
                  does what a process needs only once, such as compiling kernels.
run()             iterates from the initial centroids. It returns the number of iterations once all
                  work is done (a GPU is synchronised). It is timed from outside, unless it sets
                  self.solve_ms, for example from GPU events. Only the loop belongs here: the
                  harness compares that time with its own clock.
fetch()           returns labels (n) and centroids (k × dim) of the last run. If a library keeps no
                  labels, fetch() computes them, not run(), and the version sets self.fetch_ms to
                  the time that a user would have waited.

A version that copies to and from a device sets `self.transfer_ms` in prepare and in fetch; without
it, 0 ms are reported. A version raises Unsupported(reason) for what it cannot run.

The harness puts this module's folder on PYTHONPATH. Import large packages in `prepare`, not at the
top of the file: the program runs `describe` for every version each time that it starts, and a
library that is loaded before `main` uses all cores, whatever the row says of threads.
"""

import json
import sys
from importlib.util import find_spec


class Unsupported(Exception):  # noqa: N818 - a verdict, not an error
    """The version cannot run this problem on this machine. The reason should give the numbers."""


def check_memory(problem, needed_bytes, what):
    """Raises Unsupported when `needed_bytes` for `what` are more than this process may have."""
    free = problem.memory_bytes
    if free is not None and needed_bytes > free:
        raise Unsupported(f"needs {needed_bytes:,} B of memory for {what}, {free:,} B are free")


def stops(problem, labels_before, labels, centroids_before, centroids):
    """Whether the rules `tolerance` and `min_changes` end the loop after this step (NumPy arrays).

    Takes the labels (n) and centroids (k × dim) before and after the step. `labels_before` is None
    in the first step.
    """
    if problem.tolerance > 0:
        moves = ((centroids.astype("float64") - centroids_before) ** 2).sum(axis=1)
        if float(moves.max()) ** 0.5 < problem.tolerance:
            return True
    if problem.min_changes > 0 and labels_before is not None:
        return int((labels_before != labels).sum()) < problem.min_changes
    return problem.n < problem.min_changes


def main(
    version_class,
    *,
    name,
    summary,
    requires=(),
    backend="cpu",
    parent="",
    axes=(),
    precisions=("fp32",),
    distance="direct",
    batches=False,
    study="",
    why_not="",
    to_have_them="install it there, or name another interpreter in LLOYDBENCH_PYTHON",
):
    """Describes the version or serves it, as the command line says.

    `requires` names the Python packages that the version imports and cannot run without, and
    `to_have_them` says how to get them. `why_not` says why it cannot run even with them. With
    `batches`, the version takes several problems of one size in one solve: if problem.batch is
    above 1, points, centroids and what fetch() returns have a first axis of that length.
    """
    if sys.argv[1:] == ["describe"]:
        why_not = _missing(requires, to_have_them) or why_not
        description = {
            "name": name,
            "family": name.split("_")[0],
            "backend": backend,
            "parent": parent,
            "axes": list(axes),
            "precisions": list(precisions),
            "distance": distance,
            "batches": batches,
            "study": study,
            "summary": summary,
            "available": not why_not,
            "reason": why_not,
        }
        print(json.dumps(description))
    elif len(sys.argv) == 3 and sys.argv[1] == "serve":
        if backend == "cpu" and "threads" not in axes:
            _use_one_thread()
        answers = _own_output()
        _serve(_Conversation(version_class, sys.argv[2], requires), answers)
    else:
        sys.exit(f"usage: {sys.argv[0]} describe | serve WORKDIR")


def _missing(packages, to_have_them):
    """Returns which of the packages this interpreter does not have; empty if it has all."""
    missing = [package for package in packages if find_spec(package) is None]
    if not missing:
        return ""
    return f"{sys.executable} has no package {', '.join(missing)}: {to_have_them}"


def _use_one_thread():
    """As the row says. The libraries read these variables when they are loaded."""
    import os

    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[variable] = "1"


def _own_output():
    """Returns a file for the protocol alone. What libraries print to standard output goes to the
    log from now on."""
    import os

    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return answers


def _serve(conversation, answers):
    import traceback

    steps = {
        "prepare": conversation.prepare,
        "run": conversation.run,
        "fetch": conversation.fetch,
    }
    for line in sys.stdin:
        request = json.loads(line)
        if request["do"] == "end":
            break
        try:
            reply = {"ok": True, **steps[request["do"]](request)}
        except Unsupported as reason:
            reply = {"ok": False, "status": "unsupported", "reason": str(reason)}
        except Exception as error:
            traceback.print_exc()
            reason = f"{type(error).__name__}: {error}{_place_of(error)}"
            reply = {"ok": False, "status": "failed", "reason": reason}
        print(json.dumps(reply), file=answers, flush=True)


def _place_of(error):
    """Returns where the version's own file raised the error; the log has all of it."""
    import traceback

    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if frame.filename == sys.argv[0]]
    place = f"{own[-1].filename}:{own[-1].lineno}; " if own else ""
    return f" ({place}log.txt has the traceback)"


class _Conversation:
    def __init__(self, version_class, folder, requires):
        self.version_class = version_class
        self.folder = folder
        self.requires = requires
        self.version = None
        self.shapes = ()  # of labels and centroids
        self.told_libraries = False

    def prepare(self, request):
        from types import SimpleNamespace

        self.version = None  # frees what it holds before the next one allocates
        problem = SimpleNamespace(**{"batch": 1, **request})
        first = () if problem.batch == 1 else (problem.batch,)
        free = problem.memory_bytes
        self.shapes = (*first, problem.n), (*first, problem.k, problem.dim)
        problem.points = self._read(request["points"], free, *first, problem.n, problem.dim)
        problem.centroids = self._read(request["centroids"], free, *first, problem.k, problem.dim)
        version = self.version_class()
        setup_ms, _ = _timed(version.prepare, problem)
        setup_ms = getattr(version, "setup_ms", setup_ms)
        self.version = version
        if not self.told_libraries:
            self._tell_libraries()
        return {"setup_ms": setup_ms, "transfer_ms": self._transfer_ms()}

    def run(self, _):
        solve_ms, iterations = _timed(self.version.run)
        solve_ms = getattr(self.version, "solve_ms", solve_ms)
        if iterations is None:
            raise TypeError("run() returned None; it has to return the number of iterations")
        return {"solve_ms": solve_ms, "iterations": int(iterations)}

    def fetch(self, _):
        import numpy as np

        fetch_ms, answer = _timed(self.version.fetch)
        fetch_ms = getattr(self.version, "fetch_ms", fetch_ms)
        if not isinstance(answer, (tuple, list)) or len(answer) != 2:
            raise TypeError("fetch() has to return labels and centroids")
        labels, centroids = (np.asarray(each) for each in answer)
        if labels.dtype.kind not in "iu":
            raise TypeError(f"fetch() returned labels of type {labels.dtype}, not integers")
        _check_shape("labels", labels.shape, self.shapes[0])
        _check_shape("centroids", centroids.shape, self.shapes[1])
        labels.astype("<i4").tofile(f"{self.folder}/labels.i32")
        centroids.astype("<f8").tofile(f"{self.folder}/centroids.f64")
        return {"fetch_ms": fetch_ms, "transfer_ms": self._transfer_ms()}

    def _read(self, name, free, *shape):
        """Returns an array in memory of its own, where NumPy asks for huge pages. Where fewer than
        two such arrays fit into the free memory, it is mapped from the file."""
        import os

        import numpy as np

        path = f"{self.folder}/{name}"
        if free is not None and 2 * os.path.getsize(path) > free:
            return np.memmap(path, dtype="<f4", mode="c", shape=shape)
        return np.fromfile(path, dtype="<f4").reshape(shape)

    def _transfer_ms(self):
        return getattr(self.version, "transfer_ms", 0.0)

    def _tell_libraries(self):
        """Writes to the log which libraries were measured."""
        self.told_libraries = True
        modules = [(name, sys.modules.get(name)) for name in self.requires]
        versions = [f"{name} {_version_of(name, module)}" for name, module in modules]
        python = f"Python {sys.version.split()[0]}"
        print(f"{sys.argv[0]}: {', '.join([python, *versions])}", file=sys.stderr, flush=True)


def _check_shape(what, shape, wanted):
    """Raises ValueError, unless only axes of length 1 differ: a library may have a column."""
    if [n for n in shape if n != 1] != [n for n in wanted if n != 1]:
        raise ValueError(f"fetch() returned {what} of shape {shape}, not {wanted}")


def _version_of(name, module):
    """Returns what the module says, or the distribution that installed it; '?' if neither does."""
    import importlib.metadata

    if hasattr(module, "__version__"):
        return module.__version__
    for distribution in importlib.metadata.distributions():
        files = distribution.files or ()
        if any(file.parts[-2:] == (name, "__init__.py") for file in files):
            return f"({distribution.name} {distribution.version})"
    return "?"


def _timed(body, *arguments):
    """Returns the milliseconds that `body` took, and what it returned."""
    import time

    start = time.perf_counter()
    result = body(*arguments)
    return (time.perf_counter() - start) * 1e3, result
