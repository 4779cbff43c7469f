// The cases of SpecErrors: a changed line of the good spec and the errors that it must give.
#pragma once

#include <gtest/gtest.h>

#include <ostream>
#include <string>

#include "tests/experiments/spec_text.h"

namespace lloyd::testing {

struct ErrorCase {
  // The line of the good spec to replace. 0: the whole spec.
  int line;
  std::string text;  // the replacement
  Words errors;
};
inline void PrintTo(const ErrorCase& c, std::ostream* out) {
  *out << "line " << c.line << ": " << c.text;
}

class SpecErrors : public ::testing::TestWithParam<ErrorCase> {};

inline constexpr const char* kAxes =
    "n, k, dim, batch, threads_per_block, samples_per_thread, threads, processes, gpus, "
    "device_memory, precision, data, data_seed, init, init_seed, host_memory";

}  // namespace lloyd::testing
