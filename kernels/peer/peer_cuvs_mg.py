#!/usr/bin/env python3
"""peer_cuvs_mg: k-means of RAPIDS cuVS on several GPUs of one host, from the given centroids.

Idea     cuvs.cluster.mg.kmeans.fit with init_method "Array", one start and no tolerance. One thread
         for each GPU labels an equal part of the points; NCCL adds up the sums.
Why      It is the public k-means for several GPUs in one process.
Limits   fit() takes points in the host's memory only, and no call leaves them on the GPUs. So
         solve_ms contains their way to the GPUs: once in each fit (sources of 26.08), or in each
         iteration and for the inertia (sources in which a rank has several parts). Compare it with
         streams of points (multi_stream) or with end_to_end_ms, not with versions whose points stay
         on the GPUs. The points are in pinned memory, because that is faster; pinning is in
         setup_ms.
         Everything else is as in peer_cuvs: labels and centroids come from a second fit, and
         predict() on one GPU gives the labels, a part of the points at a time.
Source   cuvs-cu12, cuvs-cu13 on PyPI (26.10), Apache-2.0.
"""

import functools
import os
import time

import lloydbench_external
from peer_cuvs import Cuvs

VALUES_AT_ONCE = 1 << 27
"""Values of points that predict() gets at once: 512 MiB."""


@functools.cache
def resources_of(gpus):
    """Returns cuVS' resources on these GPUs. The process keeps them, because the first fit with new
    ones makes NCCL's communicators, which takes far longer than a solve."""
    # Multicast over NVLink stays off, as in the program (kernels/core/nccl.cpp): a process that
    # dies while it uses it can leave the GPUs of the host unusable.
    os.environ["NCCL_NVLS_ENABLE"] = "0"
    from cuvs.common import MultiGpuResources

    return MultiGpuResources(device_ids=list(gpus))


class CuvsOnGpus(Cuvs):
    def place(self):
        """Leaves the points on the host, because fit() takes them from there."""
        try:
            from cuvs.cluster import mg
        except ImportError:
            raise lloydbench_external.Unsupported("this cuVS has no cuvs.cluster.mg") from None
        torch, problem = self.torch, self.problem
        self.mg = mg.kmeans
        self.resources = resources_of(tuple(problem.devices))
        lloydbench_external.check_memory(problem, problem.points.nbytes, "points in pinned memory")
        begin = time.perf_counter()
        self.points = torch.from_numpy(problem.points).pin_memory().numpy()
        self.setup_ms = (time.perf_counter() - begin) * 1e3
        self.start = problem.centroids
        self.transfer_ms = 0.0  # it is in solve_ms

    def fit(self, parameters, start):
        centroids = start.copy()
        self.torch.cuda.synchronize()
        begin = time.perf_counter()
        done = self.mg.fit(parameters, self.points, centroids, resources=self.resources)[2]
        self.resources.sync()
        return centroids, done, (time.perf_counter() - begin) * 1e3

    def fetch(self):
        """Takes the labels from a second fit. fetch_ms is their way to the host, where fit() has
        left the centroids."""
        import numpy as np

        torch, problem = self.torch, self.problem
        before = torch.from_numpy(self.before_last()).to(self.device)
        labels = np.empty(problem.n, np.int32)
        step = max(1, VALUES_AT_ONCE // problem.dim)
        self.fetch_ms = 0.0
        for at in range(0, problem.n, step):
            points = torch.from_numpy(self.points[at : at + step]).to(self.device)
            nearest = torch.empty(len(points), dtype=torch.int32, device=self.device)
            self.kmeans.predict(self.parameters(1), points, before, labels=nearest)
            torch.cuda.synchronize()
            begin = time.perf_counter()
            labels[at : at + step] = nearest.cpu().numpy()
            self.fetch_ms += (time.perf_counter() - begin) * 1e3
        self.transfer_ms = self.fetch_ms
        return labels, self.centroids


if __name__ == "__main__":
    lloydbench_external.main(
        CuvsOnGpus,
        name="peer_cuvs_mg",
        backend="cuda",
        axes=["gpus"],
        requires=["cuvs", "torch", "numpy"],
        distance="expanded",
        summary="RAPIDS cuVS on several GPUs: points go from the host to the GPUs in each fit",
    )
