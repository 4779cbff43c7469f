#!/usr/bin/env python3
"""peer_flash_kmeans: the two Triton kernels of flash-kmeans, one after the other.

Idea     euclid_assign_triton (distances and argmin in one kernel, with the configuration that the
         package's own heuristic picks for the GPU) and triton_centroid_update_sorted_euclid (labels
         sorted, sums over runs), as the package's batch_kmeans_Euclid calls them.
Why      It is the fastest public k-means for GPUs that we know of.
Limits   The loop is ours and favours the package, whose own loop waits for the largest move in each
         iteration and copies the centroids. Float32 points go through TF32 products. The division
         is ours too. It is the package's except for the last step, which would round means to 16
         bits. Squared norms of points are in float32, as the kernel asks. The package's own loop
         has them in the points' precision, and in fp16 those from 65,520 on are infinite: such
         points would go to cluster 0.
Source   flash-kmeans on PyPI, Apache-2.0.
"""

import lloydbench_external
from device_lloyd import DeviceLloyd

NORMS_AT_ONCE = 1 << 27
"""Values of points, of which float32 copies take 1 GiB."""


class FlashKMeans(DeviceLloyd):
    def prepare(self, problem):
        from triton import OutOfResources

        try:
            super().prepare(problem)
        except OutOfResources as error:
            # The heuristic's configuration does not fit, and the package tries no other.
            raise lloydbench_external.Unsupported(f"the package's own choice: {error}") from None

    def place(self):
        from flash_kmeans.assign_euclid_triton import euclid_assign_triton
        from flash_kmeans.centroid_update_triton import triton_centroid_update_sorted_euclid

        self.assign = euclid_assign_triton
        self.update = triton_centroid_update_sorted_euclid
        problem = self.problem
        self.batch = self.points.reshape((problem.batch, problem.n, problem.dim))
        # In parts, because two copies in float32 would not fit where the points barely do.
        rows = self.points.reshape((problem.batch * problem.n, problem.dim))
        step = max(1, NORMS_AT_ONCE // problem.dim)
        parts = [rows[at : at + step] for at in range(0, len(rows), step)]
        norms = [(part.float() ** 2).sum(dim=-1) for part in parts]
        self.norms = self.torch.cat(norms).reshape(self.batch.shape[:2])

    def nearest(self, centroids):
        """Returns the labels (batch × n) for batch × k × dim float32 centroids."""
        return self.assign(self.batch, centroids.to(self.dtype), self.norms)

    def step(self, centroids):
        torch, problem = self.torch, self.problem
        old = centroids.reshape((problem.batch, problem.k, problem.dim))
        labels = self.nearest(old)
        sums = torch.zeros_like(old)
        counts = torch.zeros(old.shape[:2], device=self.device, dtype=torch.int32)
        self.update(
            self.batch,
            labels,
            old,
            centroid_sums=sums,
            centroid_cnts=counts,
            calculate_new=False,
        )
        means = sums / counts.float()[..., None].clamp(min=1)
        means = torch.where(counts[..., None] == 0, old, means)
        return labels.reshape(self.points.shape[:-1]), means.reshape(centroids.shape)


if __name__ == "__main__":
    lloydbench_external.main(
        FlashKMeans,
        name="peer_flash_kmeans",
        backend="cuda",
        requires=["flash_kmeans", "torch", "triton", "numpy"],
        precisions=["tf32", "fp16", "bf16"],
        distance="expanded",
        batches=True,
        summary="flash-kmeans: fused assignment and sorted update in Triton",
    )
