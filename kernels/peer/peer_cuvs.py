#!/usr/bin/env python3
"""peer_cuvs: k-means of RAPIDS cuVS, from the given centroids.

Idea     cuvs.cluster.kmeans.fit with init_method "Array", one start and no tolerance, on points
         that are on the GPU. It fuses tiles of distances with the search for the nearest and sums
         by key.
Why      cuML and many pipelines on NVIDIA GPUs call it.
Limits   fit() computes the inertia in each iteration, waits for it and uses it to stop. A fit that
         ends early is `unsupported`, and so are our stopping rules. fit() returns no labels, and
         two fits need not agree (rapidsai/cuvs#2657). So, after the clock has stopped, labels and
         centroids come from a second fit: predict() gives the labels before its last iteration,
         which gives the centroids.
Source   cuvs-cu12, cuvs-cu13 on PyPI, Apache-2.0. With its dependencies it takes about 1 GB, so no
         package of this project requires it.
"""

import time

import lloydbench_external

LEAST_TOLERANCE = 1e-30  # cuVS refuses 0, but compares with 1 - tolerance, which is 1 for this


class Cuvs:
    def prepare(self, problem):
        import torch
        from cuvs.cluster import kmeans

        if problem.tolerance > 0 or problem.min_changes > 0:
            raise lloydbench_external.Unsupported(
                "cuVS stops by a rule of its own, relative to the inertia"
            )
        if not torch.cuda.is_available():
            raise lloydbench_external.Unsupported("PyTorch sees no GPU")
        self.torch, self.kmeans, self.problem = torch, kmeans, problem
        self.device = torch.device("cuda", problem.device)
        torch.cuda.set_device(self.device)
        try:
            self.place()
        except torch.cuda.OutOfMemoryError as error:
            raise lloydbench_external.Unsupported(str(error)) from error

    def place(self):
        """Brings points and initial centroids to where fit() takes them from."""
        torch, problem = self.torch, self.problem
        begin = time.perf_counter()
        self.points = torch.from_numpy(problem.points).to(self.device)
        self.start = torch.from_numpy(problem.centroids).to(self.device)
        torch.cuda.synchronize()
        self.transfer_ms = (time.perf_counter() - begin) * 1e3

    def parameters(self, iterations):
        return self.kmeans.KMeansParams(
            metric="sqeuclidean",
            n_clusters=self.problem.k,
            init_method="Array",
            max_iter=iterations,
            tol=LEAST_TOLERANCE,
            n_init=1,
        )

    def fit(self, parameters, start):
        """Returns the centroids, the number of iterations, and the milliseconds that they took."""
        torch = self.torch
        centroids = start.clone()
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        # cuVS has its own stream: its work is done when fit() returns, and only then `last` is set.
        first.record()
        done = self.kmeans.fit(parameters, self.points, centroids)[2]  # centroids, inertia, n_iter
        last.record()
        last.synchronize()
        return centroids, done, first.elapsed_time(last)

    def fitted(self, iterations, start):
        """Returns the centroids, and the milliseconds that the fit took."""
        centroids, done, solve_ms = self.fit(self.parameters(iterations), start)
        if done != iterations:
            raise lloydbench_external.Unsupported(
                f"cuVS ended after {done} of {iterations} iterations"
            )
        return centroids, solve_ms

    def run(self):
        self.centroids, self.solve_ms = self.fitted(self.problem.iterations, self.start)
        return self.problem.iterations

    def before_last(self):
        """Returns the centroids before the last iteration of a second fit, from which labels are
        to be taken. Its centroids replace those of the run. None of it is in solve_ms or fetch_ms.
        """
        iterations, before = self.problem.iterations, self.start
        if iterations > 1:
            before = self.fitted(iterations - 1, self.start)[0]
            self.centroids = self.fitted(1, before)[0]
        return before

    def fetch(self):
        before = self.before_last()
        labels = self.torch.empty(self.problem.n, dtype=self.torch.int32, device=self.device)
        self.kmeans.predict(self.parameters(1), self.points, before, labels=labels)
        self.torch.cuda.synchronize()
        answer = labels.cpu(), self.centroids.cpu()  # its memory is written before the clock starts
        begin = time.perf_counter()
        answer[0].copy_(labels)
        answer[1].copy_(self.centroids)
        self.transfer_ms = self.fetch_ms = (time.perf_counter() - begin) * 1e3
        return tuple(each.numpy() for each in answer)


if __name__ == "__main__":
    lloydbench_external.main(
        Cuvs,
        name="peer_cuvs",
        backend="cuda",
        requires=["cuvs", "torch", "numpy"],
        distance="expanded",
        summary="RAPIDS cuVS: k-means fit from the given centroids",
    )
