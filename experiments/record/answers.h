// The answers of a run that was asked to keep them (--save): npy files in the folder answers/.
#pragma once

#include <filesystem>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/spec/spec.h"
#include "kernels/core/version.h"

namespace lloyd {

/// What can be kept: labels, centroids.
std::span<const std::string_view> answer_parts();

/// The file of a part of the answer of a point. The name is the point's id with `,` for `/` and `=`
/// for `:`, then the part. Other characters than letters, digits and `_.+-~` become %XX.
std::string answer_file(const std::string& point, std::string_view part);

/// Writes these parts of the answer, each atomically and durably. `folder` must exist.
///
/// labels has n numbers of type uint8, uint16 or int32, as narrow as K allows. centroids has
/// (K, dim) numbers: float64 for precision fp64, else float32, unless that would lose digits.
void write_answer(const std::filesystem::path& folder, const std::vector<std::string>& parts,
                  const Point& point, const Solution& solution);

/// The folder of the answers of a run.
std::filesystem::path answers_folder(const std::filesystem::path& run);

/// Makes the folder of the answers, and removes files there that were not finished. Throws
/// RunDirectoryError if something else has its name.
void open_answers(const std::filesystem::path& run);

/// Removes every part of the answers of these points.
void forget_answers(const std::filesystem::path& run, const std::set<std::string>& points);

}  // namespace lloyd
