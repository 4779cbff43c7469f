"""What the peers say where their packages cannot; the packages themselves are not needed."""

import importlib
import sys
import types
from pathlib import Path

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
