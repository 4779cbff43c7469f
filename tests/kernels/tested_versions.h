#pragma once

#include <memory>
#include <string>
#include <vector>

#include "experiments/measure/session.h"

namespace lloyd {

/// The versions that version_test.cpp tests. kernels_tests, external_tests and mpi_tests each have
/// their own definition: a program with external versions runs each one's `describe` whenever it
/// starts, which kernels_tests avoids because ctest starts it for each suite.
std::vector<std::string> tested_versions();

/// The session for those of them that need no GPU.
std::unique_ptr<Session> tested_session();

}  // namespace lloyd
