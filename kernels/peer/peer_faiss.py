#!/usr/bin/env python3
"""peer_faiss: FAISS on the GPU.

Idea     faiss.knn_gpu with k = 1 on points that stay on the GPU, then sums by PyTorch's index_add_,
         because FAISS's own clustering sends points and labels through the host in each iteration.
Why      Most vector search is built on this library.
Limits   It needs a build for GPUs. peer_faiss_cpu runs one for CPUs.
Source   faiss-gpu on PyPI (1.15.1), MIT. No package of this project requires it. faiss-gpu-cu12
         1.14.1 has no code for Hopper (sm_90).
"""

from importlib.util import find_spec
from pathlib import Path

import lloydbench_external
from device_lloyd import DeviceLloyd


def is_for_gpus():
    # Looks at pip's folder beside the package, because `describe` must not take the time to load
    # FAISS.
    found = find_spec("faiss")
    return bool(found and any(Path(found.origin).parents[1].glob("faiss_gpu*.dist-info")))


class FaissOnGpu(DeviceLloyd):
    def place(self):
        import faiss
        import faiss.contrib.torch_utils  # lets knn_gpu take tensors

        self.faiss = faiss
        self.resources = faiss.StandardGpuResources()
        self.resources.setDefaultNullStreamAllDevices()  # PyTorch's stream, which has the events

    def step(self, centroids):
        torch, k = self.torch, self.problem.k
        _, nearest = self.faiss.knn_gpu(
            self.resources, self.points, centroids, 1, device=self.problem.device
        )
        labels = nearest[:, 0]
        sums = torch.zeros_like(centroids).index_add_(0, labels, self.points)
        counts = torch.bincount(labels, minlength=k)[:, None]
        return labels, torch.where(counts > 0, sums / counts.clamp(min=1), centroids)


if __name__ == "__main__":
    lloydbench_external.main(
        FaissOnGpu,
        name="peer_faiss",
        backend="cuda",
        requires=["faiss", "torch", "numpy"],
        why_not="" if is_for_gpus() else "FAISS is built for CPUs here: peer_faiss_cpu runs it",
        distance="expanded",
        summary="FAISS: exact search for the nearest centroid and sums, on the GPU",
    )
