// mpi_tests: mpirun starts it; rank 0 runs the tests and the others follow.
#include <gtest/gtest.h>

#include <algorithm>

#include "experiments/measure/open_mpi.h"
#include "experiments/measure/ranks.h"
#include "kernels/core/version.h"
#include "tests/kernels/ranks_of_test.h"
#include "tests/kernels/tested_versions.h"

namespace lloyd {
namespace {

Leader* leader = nullptr;

}  // namespace

std::vector<std::string> tested_versions() {
  std::vector<std::string> names;
  for (const RegisteredVersion& version : versions())
    if (const auto& axes = version.info.axes;
        version.info.backend == Backend::cpu &&  // ranks_test.cpp tests those on GPUs
        std::find(axes.begin(), axes.end(), "processes") != axes.end())
      names.push_back(version.info.name);
  return names;
}

std::unique_ptr<Session> tested_session() { return leader->session(); }

std::unique_ptr<Session> leader_session() { return leader->session(); }

std::unique_ptr<Session> leader_session_on_gpus(int gpus) {
  return leader->session_on_gpus(0, gpus, true);
}

}  // namespace lloyd

int main(int argc, char** argv) {
  lloyd::OpenMpi ranks;
  if (ranks.rank() != 0) {
    lloyd::follow_rank_0(ranks, ranks.communicator());
    return 0;
  }
  lloyd::Leader of_all(ranks, ranks.communicator());
  lloyd::leader = &of_all;
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
