"""The peers on cuVS, with NumPy in the place of cuVS and PyTorch."""

import importlib
import json
import os
import subprocess
import sys
import types
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest

KERNELS = Path(__file__).parents[2] / "kernels"


class Tensor(np.ndarray):
    """The methods of PyTorch's tensors that the peers use. `place` is where it lies."""

    place = "host"

    def __array_finalize__(self, of):
        self.place = getattr(of, "place", "host")

    def at(self, place):
        moved = np.array(self).view(Tensor)
        moved.place = place
        return moved

    def to(self, device):
        return self.at(device)

    def pin_memory(self):
        return self.at("pinned")

    def cpu(self):
        return self.at("host")

    def clone(self):
        return self.at(self.place)

    def copy_(self, other):
        assert (self.dtype, self.shape) == (other.dtype, other.shape)  # else by way of other memory
        self[...] = other

    def numpy(self):
        return self


class Event:
    def __init__(self, enable_timing):
        assert enable_timing

    def record(self):
        pass

    def synchronize(self):
        pass

    def elapsed_time(self, _):
        return 1.5


def fake_torch():
    torch = types.ModuleType("torch")
    torch.int32 = np.int32
    torch.device = lambda kind, index: f"{kind}:{index}"
    torch.from_numpy = lambda values: np.asarray(values).view(Tensor)

    def empty(count, dtype, device):
        return np.empty(count, dtype).view(Tensor).at(device)

    torch.empty = empty
    torch.cuda = types.SimpleNamespace(
        is_available=lambda: True,
        set_device=lambda _: None,
        synchronize=lambda: None,
        Event=Event,
        OutOfMemoryError=type("OutOfMemoryError", (RuntimeError,), {}),
    )
    return torch


def nearest(points, centroids):
    return ((np.asarray(points)[:, None] - np.asarray(centroids)) ** 2).sum(2).argmin(1)


class Cuvs:
    """As cuVS answers: it moves centroids in place, returns no labels and may stop early."""

    def __init__(self):
        self.most_iterations = 1 << 30
        self.handles, self.fits, self.predicted = [], [], []

    def parameters(self, **given):
        assert (given["init_method"], given["n_init"]) == ("Array", 1)
        assert 0 < given["tol"] < 1e-20
        return types.SimpleNamespace(**given)

    def resources(self, device_ids):
        assert os.environ["NCCL_NVLS_ENABLE"] == "0", "multicast over NVLink must stay off"
        self.handles.append(device_ids)
        return types.SimpleNamespace(device_ids=device_ids, sync=lambda: None)

    def fit(self, parameters, points, centroids, resources=None):
        assert len(centroids) == parameters.n_clusters
        self.fits.append((points.place, resources and resources.device_ids))
        done = min(parameters.max_iter, self.most_iterations)
        for _ in range(done):
            labels = nearest(points, centroids)
            for cluster in set(labels):
                centroids[cluster] = np.asarray(points)[labels == cluster].mean(0)
        return centroids, 0.0, done

    def predict(self, _, points, centroids, labels):
        assert points.place == centroids.place == labels.place != "host"
        self.predicted.append(len(points))
        labels[:] = nearest(points, centroids)


@pytest.fixture
def machine(monkeypatch):
    """Installs the doubles and returns cuVS' with a function that prepares a peer's problem."""

    monkeypatch.setenv("NCCL_NVLS_ENABLE", "1")

    def installed(has_mg=True):
        cuvs = Cuvs()
        kmeans = types.ModuleType("kmeans")
        kmeans.KMeansParams, kmeans.fit, kmeans.predict = cuvs.parameters, cuvs.fit, cuvs.predict
        cluster, common = types.ModuleType("cluster"), types.ModuleType("common")
        cluster.kmeans, common.MultiGpuResources = kmeans, cuvs.resources
        if has_mg:
            cluster.mg = types.SimpleNamespace(kmeans=kmeans)
        modules = {"cuvs": types.ModuleType("cuvs"), "cuvs.cluster": cluster}
        modules |= {"cuvs.common": common, "torch": fake_torch()}
        for name, module in modules.items():
            monkeypatch.setitem(sys.modules, name, module)
        monkeypatch.syspath_prepend(KERNELS / "python")
        monkeypatch.syspath_prepend(KERNELS / "peer")
        several = importlib.import_module("peer_cuvs_mg")
        several.resources_of.cache_clear()

        def prepared(version, points, centroids, iterations, **given):
            points, centroids = (np.array(of, np.float32)[:, None] for of in (points, centroids))
            problem = {"n": len(points), "dim": 1, "k": len(centroids), "iterations": iterations}
            problem |= {"tolerance": 0, "min_changes": 0, "device": 0, "devices": [0, 1]}
            problem |= {"memory_bytes": None, "points": points, "centroids": centroids}
            version.prepare(types.SimpleNamespace(**{**problem, **given}))
            return version

        return types.SimpleNamespace(
            cuvs=cuvs,
            several=several,
            one=importlib.import_module("peer_cuvs"),
            prepared=prepared,
            unsupported=several.lloydbench_external.Unsupported,
        )

    return installed


POINTS, START = [0, 1, 5, 6, 20], [0, 1]


def solved(machine, version, iterations, **given):
    version = machine.prepared(version, POINTS, START, iterations, **given)
    assert version.run() == iterations
    labels, centroids = version.fetch()
    return version, labels.tolist(), centroids[:, 0].tolist()


@pytest.mark.parametrize(
    ("iterations", "labels", "centroids"),
    # iteration 1 leaves 0 and 8, from which iteration 2 takes its labels
    [(1, [0, 1, 1, 1, 1], [0, 8]), (2, [0, 0, 1, 1, 1], [0.5, 31 / 3])],
)
@pytest.mark.parametrize("gpus", [1, 2])
def test_labels_are_those_before_the_last_update(machine, gpus, iterations, labels, centroids):
    here = machine()
    version = here.one.Cuvs() if gpus == 1 else here.several.CuvsOnGpus()
    _, *answer = solved(here, version, iterations)
    assert answer == [labels, pytest.approx(centroids)]
    where = ("cuda:0", None) if gpus == 1 else ("pinned", [0, 1])
    assert all(fit == where for fit in here.cuvs.fits)


def test_every_run_begins_with_the_initial_centroids(machine):
    here = machine()
    version, *_ = solved(here, here.several.CuvsOnGpus(), 2)
    assert version.start[:, 0].tolist() == START
    assert version.run() == 2
    assert version.centroids[:, 0].tolist() == pytest.approx([0.5, 31 / 3])


def test_labels_come_a_part_of_the_points_at_a_time(machine, monkeypatch):
    here = machine()
    monkeypatch.setattr(here.several, "VALUES_AT_ONCE", 2)
    _, labels, _ = solved(here, here.several.CuvsOnGpus(), 2)
    assert here.cuvs.predicted == [2, 2, 1]
    assert labels == [0, 0, 1, 1, 1]


def test_resources_are_made_once_for_the_same_gpus(machine):
    here = machine()
    for devices in [[0, 1], [0, 1], [0], [1, 3]]:
        solved(here, here.several.CuvsOnGpus(), 1, devices=devices, device=devices[0])
    assert here.cuvs.handles == [[0, 1], [0], [1, 3]]


def test_what_cannot_run_is_unsupported(machine, monkeypatch):
    here = machine()
    with pytest.raises(here.unsupported, match="a rule of its own"):
        here.prepared(here.several.CuvsOnGpus(), POINTS, START, 2, tolerance=0.1)
    with pytest.raises(here.unsupported, match="20 B of memory for points in pinned memory"):
        here.prepared(here.several.CuvsOnGpus(), POINTS, START, 2, memory_bytes=19)
    with monkeypatch.context() as change:
        torch = sys.modules["torch"]
        error = torch.cuda.OutOfMemoryError("CUDA out of memory")
        change.setattr(torch, "from_numpy", Mock(side_effect=error))
        with pytest.raises(here.unsupported, match="CUDA out of memory"):
            here.prepared(here.one.Cuvs(), POINTS, START, 2)
    version = here.prepared(here.several.CuvsOnGpus(), POINTS, START, 3)
    here.cuvs.most_iterations = 2
    with pytest.raises(here.unsupported, match="cuVS ended after 2 of 3 iterations"):
        version.run()
    without = machine(has_mg=False)
    with pytest.raises(without.unsupported, match=r"this cuVS has no cuvs\.cluster\.mg"):
        without.prepared(without.several.CuvsOnGpus(), POINTS, START, 2)


def test_it_reads_gpus_and_names_the_missing_package():
    described = subprocess.run(
        # without site-packages, whatever is installed here
        [sys.executable, "-S", KERNELS / "peer" / "peer_cuvs_mg.py", "describe"],
        env={**os.environ, "PYTHONPATH": str(KERNELS / "python")},
        capture_output=True,
        text=True,
        check=True,
    )
    told = json.loads(described.stdout)
    assert (told["available"], told["backend"], told["axes"]) == (False, "cuda", ["gpus"])
    assert told["precisions"] == ["fp32"]
    assert "has no package cuvs, torch, numpy" in told["reason"]
