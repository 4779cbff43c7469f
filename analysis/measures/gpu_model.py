"""What an iteration on several GPUs should take: a model of few measured numbers.

An iteration on G GPUs is the part that every GPU does in full, a G-th of the rest, and the exchange
of the clusters' sums. docs/scaling.md states the assumptions and shows the predictions, which were
written down before any sweep on several GPUs was recorded. Only the exchange of multi_grid was
corrected after one."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from analysis.model.words import TABLES

GPUS = (2, 4, 8)
"""Of one host."""
NODES, PER_NODE = 8, 8
"""A cluster of 64 GPUs."""

EXCHANGE = {
    name: float(value)
    for name, value in re.findall(
        r"^inline constexpr double k(\w+) = ([\d.]+);",
        (TABLES / "gpu_exchange.h").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
}
"""What fast_auto is compiled with. The file says what each number is."""
PEER_FLAG_US, PEER_GB_S = EXCHANGE["PeerFlagUs"], EXCHANGE["PeerGbS"]

# Measured on two H200s of one host with NVLink (NV18), 2026-11.
LINK_GB_S = 55.4
"""Each GPU's link to the host. Two links at once carry this each."""
HOST_GB_S = 119.0
"""Reading the host's memory, by its 16 cores."""

# Assumed, not measured.
NETWORK_GB_S = 45.0
"""Of each GPU's adapter: 90% of 400 Gb/s (InfiniBand NDR)."""
NETWORK_STEP_US = 10.0
"""Each doubling of the nodes in an all-reduce."""


@dataclass(frozen=True)
class Case:
    """A problem of a sweep. `single_ms` is an iteration on one GPU, and `fixed_ms` the part of it
    that does not grow with the points. `sum_bytes` is what the GPUs exchange for each cluster."""

    version: str
    n: int
    k: int
    dim: int
    precision: str
    single_ms: float
    fixed_ms: float
    sum_bytes: int
    peers: bool = False
    """Whether kernels store into each other's memory. Else NCCL adds up."""

    @property
    def megabytes(self) -> float:
        return self.k * self.sum_bytes / 1e6


WIDE = 8 * (128 + 1)
PLANE = 8 * (2 * 2 + 1)
"""Bytes of a cluster: sums and size in 64 bits; in two dimensions each sum in two parts."""

STRONG = (
    Case("multi_wgmma", 8_000_000, 1024, 128, "fp16", 3.46, 0.013, WIDE),
    Case("multi_screen", 8_000_000, 1024, 128, "fp32", 4.52, 0.013, WIDE),
    Case("multi_grid", 100_000_000, 64, 2, "fp32", 0.0563, 0.0127, PLANE, True),
    Case("multi_grid", 100_000_000, 1000, 2, "fp32", 0.110, 0.0276, PLANE, True),
    Case("multi_wgmma", 65_536, 1024, 128, "fp16", 0.038, 0.013, WIDE),
)
"""The problems of sweeps/multi_gpu.yaml. Times are recorded ones under short load (fast_regimes,
fast_sweep): for fp32 eight times those of 10⁶ points, for the last eight times fewer points than
were recorded. Of 10⁸ points and K = 1000 there is an estimate only."""
WEAK = (*STRONG[2:4], STRONG[0])
"""For each GPU: those of sweeps/multi_gpu_weak.yaml, and the first one."""


def exchange_ms(case: Case, gpus: int, nodes: int, rest_ms: float) -> float:
    """Adding up the sums of all clusters. `gpus` are those of one node; `rest_ms` is what each GPU
    does beside it in an iteration."""
    if case.peers and nodes == 1:
        # Half a value and the number of its exchange travel together: one way over the link, and
        # twice the bytes.
        return (PEER_FLAG_US / 2 + (gpus - 1) * 2 * case.megabytes / PEER_GB_S * 1e3) / 1e3
    small, small_us = EXCHANGE["AllReduceSmallMb"], EXCHANGE["AllReduceSmallUs"]
    large, large_us = EXCHANGE["AllReduceLargeMb"], EXCHANGE["AllReduceLargeUs"]
    per_megabyte = (large_us - small_us) / (large - small)
    latency = small_us - per_megabyte * small
    # each doubling beyond two GPUs costs half of the latency again; a ring moves 2 (G - 1) / G
    us = latency * (1 + math.log2(gpus)) / 2 + per_megabyte * case.megabytes * 2 * (gpus - 1) / gpus
    if rest_ms < EXCHANGE["HiddenLaunchMs"]:
        us = max(us, EXCHANGE["AllReduceLaunchedUs"])
    if nodes > 1:
        # each GPU of a node carries its share over its own adapter
        carried = case.megabytes / gpus * 2 * (nodes - 1) / nodes
        us += NETWORK_STEP_US * math.log2(nodes) + carried / NETWORK_GB_S * 1e3
    return us / 1e3


def iteration_ms(case: Case, gpus: int, nodes: int = 1, weak: bool = False) -> float:
    """An iteration on `gpus` GPUs of each of `nodes` nodes. `weak`: each GPU has the case's n."""
    share = 1 if weak else gpus * nodes
    rest = case.fixed_ms + (case.single_ms - case.fixed_ms) / share
    return rest + exchange_ms(case, gpus, nodes, rest)


def efficiency(case: Case, gpus: int, nodes: int = 1, weak: bool = False) -> float:
    """T(1) / (G · T(G)), or T(1) / T(G) if `weak`."""
    workers = 1 if weak else gpus * nodes
    return case.single_ms / (workers * iteration_ms(case, gpus, nodes, weak))


def stream_gb_s(gpus: int, nodes: int = 1) -> float:
    """What all links together bring from pinned host memory, until that memory is the limit."""
    return nodes * min(gpus * LINK_GB_S, HOST_GB_S)


def stream_efficiency(gpus: int, nodes: int = 1) -> float:
    return stream_gb_s(gpus, nodes) / (gpus * nodes * LINK_GB_S)
