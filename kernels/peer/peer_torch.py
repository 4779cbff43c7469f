#!/usr/bin/env python3
"""peer_torch: PyTorch as its users write k-means, with one matrix product per chunk of points.

Idea     For each chunk of points, torch.addmm computes ‖c‖² − 2x·c and argmin gives the labels.
         Then index_add_ sums and bincount counts over all points, and a division follows. ‖x‖² is
         left out because it is the same for every centroid.
Why      A Python program without a k-means library would do this on a GPU.
Limits   The product of a chunk (at most 1 GiB) is written to memory and read again. index_add_ adds
         with atomics, in float32, in any order.
"""

import lloydbench_external
from device_lloyd import DeviceLloyd

CHUNK_BYTES = 1 << 30


class Torch(DeviceLloyd):
    def place(self):
        torch, problem = self.torch, self.problem
        self.rows = max(1, min(problem.n, CHUNK_BYTES // (problem.k * self.points.element_size())))
        self.assigned = torch.empty(problem.n, dtype=torch.int64, device=self.device)
        self.wide = self.points.float()

    def step(self, centroids):
        torch, k = self.torch, self.problem.k
        narrow = centroids.to(self.dtype)
        norms = (centroids**2).sum(dim=1).to(self.dtype)
        for begin in range(0, self.problem.n, self.rows):
            chunk = self.points[begin : begin + self.rows]
            scores = torch.addmm(norms, chunk, narrow.T, alpha=-2)
            torch.argmin(scores, dim=1, out=self.assigned[begin : begin + self.rows])
        sums = torch.zeros(k, self.problem.dim, device=self.device)
        sums.index_add_(0, self.assigned, self.wide)
        counts = torch.bincount(self.assigned, minlength=k)[:, None]
        labels = self.assigned if not self.may_stop() else self.assigned.clone()
        return labels, torch.where(counts > 0, sums / counts.clamp(min=1), centroids)


if __name__ == "__main__":
    lloydbench_external.main(
        Torch,
        name="peer_torch",
        backend="cuda",
        requires=["torch", "numpy"],
        precisions=["fp32", "tf32", "fp16", "bf16"],
        distance="expanded",
        summary="PyTorch: a matrix product per chunk of points, argmin, index_add_",
    )
