#!/usr/bin/env python3
"""peer_faiss: FAISS, on the GPU if the installed build is for GPUs, else on CPU threads.

Idea     faiss-gpu-*: faiss.knn_gpu with k = 1 on points that stay on the GPU, then sums by
         PyTorch's index_add_, because FAISS's own clustering sends points and labels through the
         host in each iteration. faiss-cpu: the whole of faiss.Clustering, that is matrix products
         in blocks, fused with the search for the nearest where the build has that, and sums by
         `threads` OpenMP threads.
Why      Most vector search is built on this library, and its clustering trains its indices.
Limits   faiss-cpu: Clustering splits a cluster to fill an empty one, but here an empty cluster
         keeps its centroid. It copies the points when n = k. Both are `unsupported`, and so are
         stopping rules. It keeps no labels: after the clock has stopped, a run with one iteration
         less and a search give them.
Source   faiss-cpu, faiss-gpu-cu12 on PyPI, MIT. No package of this project requires them.
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


ON_GPU = is_for_gpus()


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


class FaissOnCpu:
    def prepare(self, problem):
        import faiss

        if problem.tolerance > 0 or problem.min_changes > 0:
            raise lloydbench_external.Unsupported("faiss.Clustering knows no stopping rule")
        if problem.n == problem.k:
            raise lloydbench_external.Unsupported(
                f"n = k = {problem.k}: faiss.Clustering copies the points instead of iterating"
            )
        self.faiss = faiss
        self.problem = problem
        faiss.omp_set_num_threads(problem.threads)

    def run(self):
        self.clustering = self.trained(self.problem.iterations)
        return self.problem.iterations

    def trained(self, iterations):
        problem, faiss = self.problem, self.faiss
        clustering = faiss.Clustering(problem.dim, problem.k)
        clustering.niter = iterations
        clustering.min_points_per_centroid = 1
        clustering.max_points_per_centroid = problem.n  # else it takes a sample
        clustering.early_stop_threshold = -1.0  # else it ends when its error no longer falls
        faiss.copy_array_to_vector(problem.centroids.ravel(), clustering.centroids)
        index = faiss.IndexFlatL2(problem.dim)
        clustering.train(problem.points, index)
        done = clustering.iteration_stats.size()
        if done != iterations:
            raise lloydbench_external.Unsupported(
                f"faiss.Clustering ended after {done} of {iterations} iterations: its error rested"
            )
        for iteration in range(iterations):
            split = clustering.iteration_stats.at(iteration).nsplit
            if split > 0:
                raise lloydbench_external.Unsupported(
                    f"empty clusters in iteration {iteration + 1}: {split}; faiss.Clustering "
                    "splits others to fill them, where here they keep their centroids"
                )
        return clustering

    def of(self, clustering):
        flat = self.faiss.vector_to_array(clustering.centroids)
        return flat.reshape(self.problem.k, self.problem.dim)

    def labels_before_the_last_update(self):
        problem = self.problem
        centroids = problem.centroids
        if problem.iterations > 1:
            centroids = self.of(self.trained(problem.iterations - 1))
        index = self.faiss.IndexFlatL2(problem.dim)
        index.add(centroids)
        return index.search(problem.points, 1)[1][:, 0]

    def fetch(self):
        """Takes the labels from another search, which is not part of the loop."""
        import time

        begin = time.perf_counter()
        centroids = self.of(self.clustering)
        self.fetch_ms = (time.perf_counter() - begin) * 1e3
        return self.labels_before_the_last_update(), centroids


if __name__ == "__main__":
    lloydbench_external.main(
        FaissOnGpu if ON_GPU else FaissOnCpu,
        name="peer_faiss",
        backend="cuda" if ON_GPU else "cpu",
        axes=[] if ON_GPU else ["threads"],
        requires=["faiss", "torch", "numpy"] if ON_GPU else ["faiss", "numpy"],
        distance="expanded",
        summary="FAISS: exact search for the nearest centroid and sums, on the GPU or the CPU",
    )
