#pragma once

#include <string>
#include <vector>

namespace lloyd {

/// The versions that version_test.cpp tests. kernels_tests and external_tests define it each their own way: a program
/// with external versions asks them what they are whenever it starts, and ctest starts kernels_tests for each test.
std::vector<std::string> tested_versions();

}  // namespace lloyd
