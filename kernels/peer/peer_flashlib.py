#!/usr/bin/env python3
"""peer_flashlib: flash-kmeans' kernel for Hopper in CuTe DSL, from its successor FlashLib.

Idea     cutedsl_assign_euclid (TMA and wgmma, scores in registers; the first call tries tile shapes
         and warp specialisation and keeps the fastest), then triton_centroid_update_sorted_euclid,
         as the package's cutedsl_kmeans_Euclid calls them.
Why      It is the fastest public assignment of 16-bit points that we know of.
Limits   What the package leaves to its Triton kernel (dim not a multiple of 16, or above 512, and
         more) is `unsupported`. That kernel is peer_flash_kmeans, which also
         has the loop and update of this version.
Source   flashlib[cutedsl] on PyPI, Apache-2.0. No package of this project requires it.
"""

import lloydbench_external
from peer_flash_kmeans import FlashKMeans


class FlashLib(FlashKMeans):
    def place(self):
        from flashlib.primitives.kmeans import cutedsl
        from flashlib.primitives.kmeans.triton.update import triton_centroid_update_sorted_euclid

        def to_triton(*_, **__):
            raise lloydbench_external.Unsupported(
                f"the package leaves this problem to its Triton kernel; {cutedsl.cutedsl_info()}"
            )

        torch, problem = self.torch, self.problem
        # The package silently uses Triton wherever its own kernel is unavailable or fails.
        cutedsl.assign.euclid_assign_triton = to_triton
        # It caches a view of each tensor by address, so every step uses the same tensors.
        cutedsl.assign._dlpack_cache.clear()
        self.assign, self.update = (
            cutedsl.cutedsl_assign_euclid,
            triton_centroid_update_sorted_euclid,
        )
        self.batch = self.points[None]
        shape = (1, problem.k, problem.dim)
        self.rounded = torch.empty(shape, device=self.device, dtype=self.dtype)
        self.norms = torch.empty(problem.k, device=self.device)
        self.labels_out = torch.empty((1, problem.n), device=self.device, dtype=torch.int32)

    def nearest(self, centroids):
        self.rounded.copy_(centroids)
        self.torch.sum(self.rounded[0].float() ** 2, dim=-1, out=self.norms)
        labels = self.assign(self.batch, self.rounded, out=self.labels_out, c_sq=self.norms)
        return labels.clone() if self.may_stop() else labels


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
