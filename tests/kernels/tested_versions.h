#pragma once

#include <memory>
#include <string>
#include <vector>

#include "experiments/measure/session.h"

namespace lloyd {

/// The versions that version_test.cpp tests. kernels_tests, external_tests and mpi_tests define it each their own way: a
/// program with external versions asks them what they are whenever it starts, and ctest starts kernels_tests for each test.
std::vector<std::string> tested_versions();

/// Where those of them run that need no GPU.
std::unique_ptr<Session> tested_session();

}  // namespace lloyd
