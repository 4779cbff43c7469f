// The tables of keys.h: the keys of each section, in the order in which they are documented. Each
// table is in the file of its name, such as keys_data.cpp.
#pragma once

#include <vector>

#include "experiments/spec/keys.h"

namespace lloyd {

std::vector<Key> spec_keys();  // the spec's own
std::vector<Key> data_keys();
std::vector<Key> solve_keys();
Key distance_key();  // of solve, and of the spec itself
std::vector<Key> measure_keys();
std::vector<Key> profile_keys();

}  // namespace lloyd
