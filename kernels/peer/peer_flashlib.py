#!/usr/bin/env python3
"""peer_flashlib: flash-kmeans' kernel for Hopper in CuTe DSL, as its successor FlashLib has it.

What     cutedsl_assign_euclid (TMA and wgmma, scores in registers; tile shape and warp
         specialisation are tried out at the first call, and the fastest stays), then
         triton_centroid_update_sorted_euclid, as the package's cutedsl_kmeans_Euclid calls them.
Why      the fastest public assignment of 16-bit points that is known to us.
Limits   16 bits, dim a multiple of 16 up to 512. The package turns to its Triton kernel wherever
         the other does not run; that is peer_flash_kmeans, and `unsupported` here. The loop and the
         division are ours, as in peer_flash_kmeans.
Source   flashlib[cutedsl] on PyPI, Apache-2.0. No package of this project asks for it.
"""

import lloydbench_external
from device_lloyd import DeviceLloyd

MOST_DIMENSIONS = 512
SMALL = 16  # of dim and k together: the package prefers Triton


class FlashLib(DeviceLloyd):
    def prepare(self, problem):
        if problem.dim % 16 != 0 or problem.dim > MOST_DIMENSIONS:
            raise lloydbench_external.Unsupported(
                f"takes a multiple of 16 up to {MOST_DIMENSIONS} dimensions, not {problem.dim}"
            )
        if problem.dim <= SMALL and problem.k <= SMALL:
            raise lloydbench_external.Unsupported(
                f"leaves {problem.k} clusters in {problem.dim} dimensions to Triton"
            )
        super().prepare(problem)
        if not self.cute._kernel_cache:
            raise lloydbench_external.Unsupported(
                f"its CuTe kernel did not run: {self.cute.cutedsl_info()}"
            )

    def place(self):
        from flashlib.primitives.kmeans import cutedsl
        from flashlib.primitives.kmeans.triton.update import triton_centroid_update_sorted_euclid

        torch, problem = self.torch, self.problem
        self.cute, self.update = cutedsl, triton_centroid_update_sorted_euclid
        cutedsl._kernel_cache.clear()
        # It keeps a view of every tensor that it has seen, by address: so always the same ones.
        cutedsl._dlpack_cache.clear()
        self.batch = self.points[None]
        shape = (1, problem.k, problem.dim)
        self.rounded = torch.empty(shape, device=self.device, dtype=self.dtype)
        self.norms = torch.empty(problem.k, device=self.device)
        self.nearest = torch.empty((1, problem.n), device=self.device, dtype=torch.int32)

    def step(self, centroids):
        torch, k = self.torch, self.problem.k
        old = centroids[None]
        self.rounded.copy_(old)
        torch.sum(self.rounded[0].float() ** 2, dim=-1, out=self.norms)
        self.cute.cutedsl_assign_euclid(self.batch, self.rounded, out=self.nearest, c_sq=self.norms)
        sums = torch.zeros_like(old)
        counts = torch.zeros((1, k), device=self.device, dtype=torch.int32)
        self.update(
            self.batch,
            self.nearest,
            old,
            centroid_sums=sums,
            centroid_cnts=counts,
            calculate_new=False,
        )
        means = sums / counts.float()[..., None].clamp(min=1)
        labels = self.nearest[0].clone() if self.may_stop() else self.nearest[0]
        return labels, torch.where(counts[..., None] == 0, old, means)[0]


if __name__ == "__main__":
    lloydbench_external.main(
        FlashLib,
        name="peer_flashlib",
        backend="cuda",
        requires=["flashlib", "cutlass", "torch", "triton", "numpy"],
        precisions=["fp16", "bf16"],
        distance="expanded",
        summary="FlashLib: assignment for Hopper in CuTe DSL, sorted update in Triton",
    )
