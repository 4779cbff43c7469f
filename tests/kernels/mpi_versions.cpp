// mpi_tests: mpirun starts it; rank 0 runs the tests and the others follow.
#include <gtest/gtest.h>

#include <algorithm>

#include "experiments/measure/ranks.h"
#include "kernels/core/version.h"
#include "tests/kernels/tested_versions.h"

namespace lloyd {
namespace {

Leader* leader = nullptr;

}  // namespace

std::vector<std::string> tested_versions() {
  std::vector<std::string> names;
  for (const RegisteredVersion& version : versions())
    if (const auto& axes = version.info.axes;
        std::find(axes.begin(), axes.end(), "processes") != axes.end())
      names.push_back(version.info.name);
  return names;
}

std::unique_ptr<Session> tested_session() { return leader->session(); }

}  // namespace lloyd

int main(int argc, char** argv) {
  int threads = MPI_THREAD_SINGLE, rank = 0, status = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &threads);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank != 0) {
    lloyd::follow_rank_0(MPI_COMM_WORLD);
  } else {
    lloyd::Leader of_all(MPI_COMM_WORLD);
    lloyd::leader = &of_all;
    testing::InitGoogleTest(&argc, argv);
    status = RUN_ALL_TESTS();
  }
  MPI_Finalize();
  return status;
}
