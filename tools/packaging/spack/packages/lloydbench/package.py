# ruff: noqa: F403, F405 (Spack's recipes use its language by *)
"""Spack's recipe. See docs/install.md."""

from spack.package import *
from spack_repo.builtin.build_systems.cmake import CMakePackage
from spack_repo.builtin.build_systems.cuda import CudaPackage


class Lloydbench(CMakePackage, CudaPackage):
    """A research harness for GPU k-means kernels: sweeps over many versions of Lloyd's k-means.
    Every measurement is verified against a float64 reference."""

    homepage = "https://github.com/OWNER/lloydbench"
    git = "https://github.com/OWNER/lloydbench.git"

    license("Apache-2.0")

    version("main", branch="main")
    version("1.0.0", tag="v1.0.0")

    variant("mpi", default=True, description="Build the MPI versions")
    variant("analysis", default=True, description="Install what draws figures and reports")

    depends_on("cxx", type="build")
    depends_on("cmake@3.22:", type="build")
    depends_on("ninja", type="build")
    generator("ninja")

    depends_on("benchmark")
    depends_on("cli11", type="build")
    depends_on("eigen@3:", type="build")
    depends_on("highway@0.16:")
    depends_on("fast-float", type="build")
    depends_on("fmt@8:")
    depends_on("nlohmann-json", type="build")
    depends_on("re2")
    depends_on("xxhash", type="build")
    depends_on("yaml-cpp@0.6:")
    depends_on("zlib-api")
    depends_on("openmpi", when="+mpi")
    depends_on("cuda@13:", when="+cuda")
    depends_on("googletest", type="test")

    with when("+analysis"):
        depends_on("python@3.10:", type="run")
        depends_on("py-numpy@2:", type="run")
        depends_on("py-pandas@2", type="run")
        depends_on("py-scipy", type="run")
        depends_on("py-matplotlib", type="run")
        depends_on("py-jinja2", type="run")
        depends_on("py-msgspec", type="run")

    def cmake_args(self):
        args = [
            self.define_from_variant("LLOYD_CUDA", "cuda"),
            self.define_from_variant("LLOYD_MPI", "mpi"),
            self.define("LLOYD_TESTS", self.run_tests),
        ]
        if self.spec.satisfies("+cuda"):
            args.append(self.define("CMAKE_CUDA_COMPILER", self.spec["cuda"].prefix.bin.nvcc))
            chosen = self.spec.variants["cuda_arch"].value
            architectures = "portable" if chosen == ("none",) else ";".join(chosen)
            args.append(self.define("LLOYD_CUDA_ARCHITECTURES", architectures))
        return args

    def setup_run_environment(self, env):
        if self.spec.satisfies("+analysis"):
            env.prepend_path("PYTHONPATH", self.prefix.share.lloydbench)
