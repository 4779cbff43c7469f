// When a ceiling is measured again because something else disturbed its samples.
#pragma once

#include <chrono>
#include <functional>
#include <vector>

#include "profiling/ceilings.h"

namespace lloyd::profiling {

/// The middle value, or the upper one of the two in the middle. `samples` must not be empty.
double middle_of(std::vector<double> samples);

/// Whether the middle half of the samples differ by at most 2% of their median. On an idle machine
/// what a GPU copies, and what it computes below its power limit, repeats within 1.5%. While
/// another guest of the host copied, uploads differed by 6 to 7% (H200s, 2026-11-28).
bool is_steady(const std::vector<double>& samples);

/// Measures a round of samples, and up to two more as long as they are not steady. Waits for
/// `pause` before each of these. Returns the round with the best median, because others on the
/// machine can only lower a rate. Its method names the number of rounds if there was more than one.
Ceiling steady_round(const std::function<Ceiling()>& measure, std::chrono::milliseconds pause);

}  // namespace lloyd::profiling
