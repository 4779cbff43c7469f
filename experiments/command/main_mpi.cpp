// run_experiment_mpi has the versions that call MPI themselves. mpirun starts it.
#include <cstring>
#include <exception>
#include <iostream>

#include "build_info.h"
#include "experiments/run/ranked_worker.h"
#include "kernels/core/cores.h"

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "--version") == 0) {
    std::cout << lloyd::build_info::version << '\n';
    return 0;
  }
  lloyd::keep_openmp_within_cores();
  try {
    return lloyd::run_ranked_worker();
  } catch (const std::exception& error) {
    std::cerr << "run_experiment_mpi: " << error.what() << '\n';
    return 1;
  }
}
