"""What the peers say where their packages cannot; the packages themselves are not needed."""

import importlib
import json
import os
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest

KERNELS = Path(__file__).parents[2] / "kernels"


def test_flash_kmeans_does_not_fit_everywhere(monkeypatch):
    """Its kernel's configuration may want more shared memory than there is."""

    triton = types.ModuleType("triton")
    triton.OutOfResources = type("OutOfResources", (Exception,), {})

    def prepare(*_):
        raise triton.OutOfResources("out of resource: shared memory, Required: 262144")

    monkeypatch.setitem(sys.modules, "triton", triton)
    monkeypatch.syspath_prepend(KERNELS / "python")
    monkeypatch.syspath_prepend(KERNELS / "peer")
    peer = importlib.import_module("peer_flash_kmeans")
    monkeypatch.setattr(peer.DeviceLloyd, "prepare", prepare)
    with pytest.raises(peer.lloydbench_external.Unsupported, match="own choice: out of resource"):
        peer.FlashKMeans().prepare(None)


class Tensor(np.ndarray):
    """The few methods of PyTorch's tensors that a step uses."""

    def float(self):
        return self.astype(np.float32)

    def clamp(self, min):
        return np.maximum(self, min)

    def to(self, _):
        return self

    def sum(self, dim):
        return super().sum(axis=dim)

    def int(self):
        return self.astype(np.int32)

    def copy_(self, other):
        assert self.dtype == other.dtype  # PyTorch would take fresh memory on the way
        self[...] = other

    def numpy(self):
        return self


def tensor(values):
    return np.asarray(values).view(Tensor)


def test_an_answer_is_copied_to_memory_that_prepare_wrote(monkeypatch):
    monkeypatch.syspath_prepend(KERNELS / "python")
    monkeypatch.syspath_prepend(KERNELS / "peer")
    version = importlib.import_module("device_lloyd").DeviceLloyd()
    version.answer = written = tensor(np.ones(3, np.int32)), tensor(np.ones((2, 1), np.float32))
    version.labels = tensor(np.array([0, 1, 1], np.int64))
    version.centroids = tensor(np.array([[2], [5]], np.float32))
    labels, centroids = version.fetch()
    assert labels.tolist() == [0, 1, 1]
    assert centroids.tolist() == [[2], [5]]
    assert all(map(np.shares_memory, (labels, centroids), written))


def test_flash_kmeans_takes_a_batch_as_single_problems(monkeypatch):
    """The package's two kernels take batches; here NumPy stands in for them."""
    monkeypatch.syspath_prepend(KERNELS / "python")
    monkeypatch.syspath_prepend(KERNELS / "peer")
    peer = importlib.import_module("peer_flash_kmeans")
    monkeypatch.setattr(peer, "NORMS_AT_ONCE", 60)  # those of 20 points

    def assign(points, centroids, norms):
        assert np.allclose(norms, (points**2).sum(2))
        return tensor(((points[:, :, None] - centroids[:, None]) ** 2).sum(3).argmin(2))

    def update(points, labels, _, *, centroid_sums, centroid_cnts, calculate_new):
        assert not calculate_new
        for of, its, sums, counts in zip(points, labels, centroid_sums, centroid_cnts, strict=True):
            np.add.at(sums, its, of)
            np.add.at(counts, its, 1)

    def stepped(points, centroids, batch):
        version = peer.FlashKMeans()
        version.torch = types.SimpleNamespace(
            zeros_like=lambda a: tensor(np.zeros_like(a)),
            zeros=lambda shape, device, dtype: tensor(np.zeros(shape, dtype)),
            where=lambda *a: tensor(np.where(*a)),
            cat=lambda parts: tensor(np.concatenate(parts)),
            int32=np.int32,
        )
        version.problem = types.SimpleNamespace(batch=batch, n=50, k=4, dim=3)
        version.points, version.dtype, version.device = tensor(points), None, None
        version.place()
        return version.step(tensor(centroids))

    modules = {"assign_euclid_triton": {"euclid_assign_triton": assign}}
    modules["centroid_update_triton"] = {"triton_centroid_update_sorted_euclid": update}
    monkeypatch.setitem(sys.modules, "flash_kmeans", types.ModuleType("flash_kmeans"))
    for name, kernels in modules.items():
        module = types.ModuleType(name)
        vars(module).update(kernels)
        monkeypatch.setitem(sys.modules, f"flash_kmeans.{name}", module)
    points = np.random.default_rng(1).normal(size=(3, 50, 3)).astype(np.float32)
    centroids = points[:, :4].copy()
    centroids[1, 3] = 100  # an empty cluster keeps its centroid
    labels, means = stepped(points, centroids, 3)
    assert labels.shape == (3, 50)
    assert (means[1, 3] == 100).all()
    for i in range(3):
        alone = stepped(points[i], centroids[i], 1)
        assert alone[0].shape == (50,)
        assert (labels[i] == alone[0]).all()
        assert (means[i] == alone[1]).all()


class Daal4py(types.ModuleType):
    """As oneDAL answers: it ends when the centroids rest, and fills an empty cluster."""

    def __init__(self):
        super().__init__("daal4py")
        self.threads = None

    def daalinit(self, threads):
        self.threads = threads

    def kmeans(self, k, iterations, **options):
        assert options["accuracyThreshold"] == 0
        assert options["fptype"] == "float"

        def nearest(points, centroids):
            return ((points[:, None] - centroids) ** 2).sum(2).argmin(1)

        def compute(points, centroids):
            done = 0
            while done < iterations:
                done += 1
                labels = nearest(points, centroids)
                before = centroids
                members = [points[labels == cluster] for cluster in range(k)]
                centroids = np.array([of.mean(0) if len(of) else points[-1] for of in members])
                if (centroids == before).all():
                    break
            labels = nearest(points, centroids) if options["assignFlag"] else None
            return types.SimpleNamespace(
                centroids=centroids,
                nIterations=np.array([[done]]),
                assignments=None if labels is None else labels[:, None],
            )

        return types.SimpleNamespace(compute=compute)


@pytest.fixture
def one_dal(monkeypatch):
    library = Daal4py()
    monkeypatch.setitem(sys.modules, "daal4py", library)
    monkeypatch.syspath_prepend(KERNELS / "python")
    monkeypatch.syspath_prepend(KERNELS / "peer")
    peer = importlib.import_module("peer_sklearnex")

    def prepared(points, centroids, iterations):
        version = peer.OneDal()
        points, centroids = (np.array(of, np.float32)[:, None] for of in (points, centroids))
        version.prepare(
            types.SimpleNamespace(
                **{"n": len(points), "dim": 1, "k": len(centroids), "iterations": iterations},
                **{"tolerance": 0, "min_changes": 0, "threads": 3},
                **{"points": points, "centroids": centroids},
            )
        )
        assert library.threads == 3
        return version

    return prepared


def test_one_dal_makes_every_iteration_and_gives_the_labels_before_the_last_update(one_dal):
    version = one_dal([0, 1, 5, 6, 20], [0, 1], iterations=2)
    assert version.run() == 2
    labels, centroids = version.fetch()
    # iteration 1 leaves 0 and 8; iteration 2 assigns to these
    assert labels.tolist() == [0, 0, 1, 1, 1]
    assert centroids[:, 0] == pytest.approx([0.5, 31 / 3])
    calls = []
    version = one_dal([0, 1, 5, 6], [0, 6], iterations=9)
    call = version.call

    def counted(centroids, iterations, **options):
        calls.append(iterations)
        return call(centroids, iterations, **options)

    version.call = counted
    assert version.run() == 9
    assert calls[0] == 9
    assert calls[-1] == 1  # it ended early each time, until all were made


def test_an_empty_cluster_is_nothing_that_one_dal_may_fill(one_dal):
    version = one_dal([0, 1, 2, 9], [0, 1, 100], iterations=3)
    version.run()
    why = "cluster 2 is empty in iteration 1: oneDAL moves its centroid"
    with pytest.raises(version.prepare.__globals__["lloydbench_external"].Unsupported, match=why):
        version.fetch()


def test_faiss_for_cpus_is_not_the_peer_on_the_gpu(tmp_path):
    """The build for CPUs is there, and PyTorch: what is missing is told, and who runs it."""
    for package in ("faiss", "torch"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").touch()
    (tmp_path / "faiss_cpu-1.15.1.dist-info").mkdir()
    path = f"{KERNELS / 'python'}:{tmp_path}"
    described = subprocess.run(
        [sys.executable, KERNELS / "peer" / "peer_faiss.py", "describe"],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    told = json.loads(described.stdout)
    assert not told["available"]
    assert told["reason"] == "FAISS is built for CPUs here: peer_faiss_cpu runs it"


def test_superkmeans_assigns_and_scipy_adds_up(monkeypatch):
    """NumPy stands in for the package. An empty cluster keeps its centroid, and blocks add up."""
    library = types.ModuleType("superkmeans")

    class Engine:
        def __init__(self, n_clusters, dimensionality, hierarchical):
            assert (n_clusters, dimensionality, hierarchical) == (3, 2, False)

        def assign(self, points, centroids):
            distances = ((points[:, None] - centroids) ** 2).sum(2)
            return distances.argmin(1).astype(np.uint32)

    library.SuperKMeans = Engine
    monkeypatch.setitem(sys.modules, "superkmeans", library)
    given = []
    pools = types.SimpleNamespace(threadpool_limits=lambda limits: given.append(limits))
    monkeypatch.setitem(sys.modules, "threadpoolctl", pools)
    monkeypatch.syspath_prepend(KERNELS / "python")
    monkeypatch.syspath_prepend(KERNELS / "peer")
    peer = importlib.import_module("peer_superkmeans")
    monkeypatch.setattr(peer, "BLOCK", 2)
    version = peer.SuperKMeans()
    problem = {"n": 5, "k": 3, "dim": 2, "iterations": 2, "tolerance": 0, "min_changes": 0}
    points = np.array([[0, 0], [2, 0], [5, 0], [6, 0], [20, 0]], np.float32)
    centroids = np.array([[0, 0], [2, 0], [99, 99]], np.float32)
    problem |= {"points": points, "centroids": centroids, "threads": 3}
    version.prepare(types.SimpleNamespace(**problem))
    assert given == [3]
    assert version.run() == 2
    labels, means = version.fetch()
    # iteration 1 leaves 0 and 33 / 4; iteration 2 assigns to these
    assert labels.tolist() == [0, 0, 1, 1, 1]
    assert means == pytest.approx(np.array([[1, 0], [31 / 3, 0], [99, 99]]))


@pytest.mark.parametrize(
    ("peer", "package"),
    [
        ("peer_sklearnex", "daal4py, numpy"),
        ("peer_faiss_cpu", "faiss, numpy"),
        ("peer_superkmeans", "superkmeans, numpy, scipy, threadpoolctl"),
    ],
)
def test_a_peer_on_the_cpu_says_how_to_get_its_package(peer, package):
    described = subprocess.run(
        # without site-packages, whatever is installed here
        [sys.executable, "-S", KERNELS / "peer" / f"{peer}.py", "describe"],
        env={**os.environ, "PYTHONPATH": str(KERNELS / "python")},
        capture_output=True,
        text=True,
        check=True,
    )
    told = json.loads(described.stdout)
    assert (told["available"], told["backend"], told["axes"]) == (False, "cpu", ["threads"])
    assert f"has no package {package}: `make peers` installs it" in told["reason"]
