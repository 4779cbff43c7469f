"""What the peers on PyTorch share: data on the GPU, the loop, and CUDA events around it."""

import time

import lloydbench_external


class DeviceLloyd:
    """Lloyd's loop on one GPU. A peer defines two methods:

    place()                    prepares what its assignment needs besides self.points (n × dim, in
                               self.dtype on self.device).
    step(centroids)            returns the labels (n, any integer type) and the centroids of one
                               iteration. The given and the returned centroids are k × dim float32
                               (each with a first axis for the problems of a batch):
                               a mean rounded to 16 bits would be judged wrong. The assignment
                               rounds them for its product.
    """

    def prepare(self, problem):
        import torch

        self.torch = torch
        self.problem = problem
        self.device = torch.device("cuda", problem.device)
        torch.cuda.set_device(self.device)
        torch.backends.cuda.matmul.allow_tf32 = problem.precision == "tf32"
        self.dtype = {"fp16": torch.float16, "bf16": torch.bfloat16}.get(
            problem.precision, torch.float32
        )
        torch.cuda.empty_cache()  # what PyTorch keeps of the repetition before counts as free
        needed = problem.points.size * torch.empty(0, dtype=self.dtype).element_size()
        free = torch.cuda.mem_get_info(self.device)[0]
        if 2 * needed > free:
            raise lloydbench_external.Unsupported(
                f"needs {2 * needed:,} B on the device for the points and one copy, "
                f"{free:,} B are free"
            )
        # The points of a 16-bit problem are in 16 bits on the host, as they are for our versions.
        points = torch.from_numpy(problem.points).to(self.dtype)
        torch.cuda.synchronize()
        begin = time.perf_counter()
        self.points = points.to(self.device)
        self.start = torch.from_numpy(problem.centroids).to(self.device)
        torch.cuda.synchronize()
        self.transfer_ms = (time.perf_counter() - begin) * 1e3
        try:
            self.place()
        except torch.cuda.OutOfMemoryError as error:
            raise lloydbench_external.Unsupported(str(error)) from error
        torch.cuda.synchronize()
        self.setup_ms = (time.perf_counter() - begin) * 1e3
        # Not in setup_ms: the first step compiles or chooses kernels. The memory for the answer is
        # written now, as it is for our versions, so that fetch() does not wait for its pages.
        labels, centroids = self.step(self.start)
        self.answer = labels.int().cpu(), centroids.cpu()
        torch.cuda.synchronize()

    def run(self):
        torch = self.torch
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        first.record()
        iterations = self.iterate()
        last.record()
        last.synchronize()
        self.solve_ms = first.elapsed_time(last)
        return iterations

    def iterate(self):
        labels, centroids = None, self.start
        for iteration in range(1, self.problem.iterations + 1):
            before, labels_before = centroids, labels
            labels, centroids = self.labels, self.centroids = self.step(before)
            if self.may_stop() and self.stops(labels_before, labels, before, centroids):
                return iteration
        return self.problem.iterations

    def may_stop(self):
        return self.problem.tolerance > 0 or self.problem.min_changes > 0

    def stops(self, labels_before, labels, before, centroids):
        problem = self.problem
        if problem.tolerance > 0:
            moves = (centroids.double() - before.double()).norm(dim=1)
            if float(moves.max()) < problem.tolerance:
                return True
        changes = problem.n if labels_before is None else int((labels != labels_before).sum())
        return changes < problem.min_changes

    def fetch(self):
        begin = time.perf_counter()
        labels, centroids = self.answer
        # The GPU changes the type: a copy between types goes through fresh memory on the host.
        labels.copy_(self.labels.int())
        centroids.copy_(self.centroids)
        self.transfer_ms = (time.perf_counter() - begin) * 1e3
        return labels.numpy(), centroids.numpy()
