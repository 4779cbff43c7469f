"""How a version looks: the same in all figures, so that a reader of several finds it again."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from analysis.figures.style import COLOURS, DASHES, MARKERS

OWN = (
    "fast_wgmma fast_wgmma_ordered fast_cpu_simd goldsborough_tree python_sklearn cpu_mpi "
    "peer_faiss",
    "fast_screen wang_global flores_distribution luigi_v3_shared_centroids cpu_pthreads "
    "python_numpy peer_sklearnex peer_torch",
    "fast_grid fast_cpu_tree wang_thrust flores_sums biason_coalesced cpu_eigen peer_cuvs",
    "fast_split fast_cublas flores_generation biason_uncoalesced cpu_openmp python_scipy "
    "multi_grid stream_grid",
    "fast_private fast_counting_sort fast_cpu_amx luigi_v2_split goldsborough_shared "
    "cpu_sequential multi_screen peer_flashlib",
    "fast_fused fast_cpu_gemm luigi_v4_device_update goldsborough_thrust peer_faiss_cpu "
    "stream_wgmma multi_wgmma",
    "fast_resident fast_optin fast_auto fast_cpu_auto cpu_mpi_openmp multi_stream",
    "fast_assign fast_cpu_bounds luigi_v1_fused goldsborough_atomic wang_shared "
    "peer_flash_kmeans peer_cuvs_mg",
)
"""The versions that have each of COLOURS as their own, in the order of their markers. Versions that
are measured together have different colours here, or are so many that colours must repeat. A new
version needs no place here; with one, its colour does not depend on what it is measured with."""

_OWN = {
    version: (hue, MARKERS[(hue + place) % len(MARKERS)])
    for hue, versions in enumerate(OWN)
    for place, version in enumerate(versions.split())
}


def styles_in(points: pd.DataFrame, baseline: str, variants: int = 1) -> dict[str, list[dict]]:
    """version_styles() of all versions of `points` (the whole run), so that they are the same in
    each of its figures. The baseline is grey there, and takes no colour from the others."""
    versions = [v for v in dict.fromkeys(points["version"]) if v != baseline]
    return dict(zip(versions, version_styles(versions, variants), strict=True))


def version_styles(versions: Sequence[str], variants: int = 1) -> list[list[dict]]:
    """Colour, marker and dashes of each of the different `versions`, and of each of its variants.

    No colour is given more often than necessary: up to 8 versions have 8 colours. As far as this
    allows, versions have their own colours, the first of OWN before the others. Each version that
    is left takes the colour that is used least. A version has its own marker unless another version
    of its colour has it. Versions of one colour also differ in dashes."""
    most = -(-len(versions) // len(COLOURS))
    markers: list[list[str]] = [[] for _ in COLOURS]  # those given, by colour
    given: dict[str, tuple[int, int]] = {}

    def give(version: str, hue: int) -> None:
        own = [_OWN[version][1]] if version in _OWN else []
        free = [m for m in own + MARKERS[hue:] + MARKERS[:hue] if m not in markers[hue]]
        given[version] = (hue, len(markers[hue]))
        markers[hue].append(free[0] if free else MARKERS[len(markers[hue]) % len(MARKERS)])

    for version, (hue, _) in _OWN.items():
        if version in versions and len(markers[hue]) < most:
            give(version, hue)
    for version in versions:
        if version not in given:
            give(version, min(range(len(COLOURS)), key=lambda hue: len(markers[hue])))
    return [
        [
            {
                "color": COLOURS[hue],
                "marker": markers[hue][turn],
                "linestyle": DASHES[(turn + variant) % len(DASHES)],
                "fillstyle": "none" if variant % 2 else "full",
            }
            for variant in range(variants)
        ]
        for hue, turn in map(given.__getitem__, versions)
    ]
