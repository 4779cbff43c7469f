#include "experiments/record/answers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <ostream>

#include "experiments/process/plain_folder.h"
#include "experiments/record/run_files.h"
#include "experiments/record/run_folder.h"

namespace lloyd {
namespace fs = std::filesystem;
namespace {

constexpr auto kParts = std::to_array<std::string_view>({"labels", "centroids"});

/// The NumPy format, version 1.0: magic, version, length of the header (little-endian), header.
/// With its newline, the header ends at a multiple of 64 bytes.
std::string npy_header(const std::string& type, const std::string& shape) {
  constexpr std::size_t kBefore = 10, kAlignment = 64;
  std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}", type, shape);
  header.append(kAlignment - 1 - (kBefore + header.size()) % kAlignment, ' ');
  header += '\n';
  const std::size_t size = header.size();
  std::string start = "\x93NUMPY";
  start += {'\x01', '\x00', static_cast<char>(size & 0xff), static_cast<char>(size >> 8)};
  return start + header;
}

static_assert(std::endian::native == std::endian::little);

/// Writes an array as numbers of type `To`.
template <typename To, typename From>
void write_npy(std::ostream& out, const std::string& type, const std::string& shape,
               const std::vector<From>& values) {
  out << npy_header(type, shape);
  std::array<To, 1 << 14> block{};
  for (std::size_t at = 0; at < values.size(); at += block.size()) {
    const std::size_t count = std::min(block.size(), values.size() - at);
    for (std::size_t i = 0; i < count; ++i) block[i] = static_cast<To>(values[at + i]);
    out.write(reinterpret_cast<const char*>(block.data()),
              static_cast<std::streamsize>(count * sizeof(To)));
  }
}

void write_labels(std::ostream& out, const Point& point, const Solution& solution) {
  const std::string shape = point.batch == 1 ? fmt::format("({},)", point.n)
                                             : fmt::format("({}, {})", point.batch, point.n);
  if (point.k - 1 <= std::numeric_limits<std::uint8_t>::max())
    write_npy<std::uint8_t>(out, "|u1", shape, solution.labels);
  else if (point.k - 1 <= std::numeric_limits<std::uint16_t>::max())
    write_npy<std::uint16_t>(out, "<u2", shape, solution.labels);
  else
    write_npy<std::int32_t>(out, "<i4", shape, solution.labels);
}

/// Whether float32 has all digits of the coordinates, as those of a version that computes in it.
bool fits_float(const std::vector<double>& values) {
  return std::ranges::all_of(values,
                             [](double value) { return static_cast<float>(value) == value; });
}

void write_centroids(std::ostream& out, const Point& point, const Solution& solution) {
  const std::string shape = point.batch == 1
                                ? fmt::format("({}, {})", point.k, point.dim)
                                : fmt::format("({}, {}, {})", point.batch, point.k, point.dim);
  if (point.precision != Precision::fp64 && fits_float(solution.centroids))
    write_npy<float>(out, "<f4", shape, solution.centroids);
  else
    write_npy<double>(out, "<f8", shape, solution.centroids);
}

}  // namespace

std::span<const std::string_view> answer_parts() { return kParts; }

std::string answer_file(const std::string& point, std::string_view part) {
  std::string name;
  for (const char c : point) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '_' || c == '.' || c == '+' || c == '-' || c == '~';
    if (plain)
      name += c;
    else if (c == '/')
      name += ',';
    else if (c == ':')
      name += '=';
    else
      name += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return fmt::format("{},{}.npy", name, part);
}

void write_answer(const fs::path& folder, const std::vector<std::string>& parts, const Point& point,
                  const Solution& solution) {
  const PlainFolder files(folder);
  for (const std::string& part : parts)
    files.replace(answer_file(point.id, part), [&](std::ostream& out) {
      if (part == "labels")
        write_labels(out, point, solution);
      else
        write_centroids(out, point, solution);
    });
}

fs::path answers_folder(const fs::path& run) { return run / run_files::kAnswers; }

void open_answers(const fs::path& run) {
  const fs::path folder = answers_folder(run);
  const fs::file_status status = fs::symlink_status(folder);
  if (fs::exists(status) && !fs::is_directory(status))
    throw RunDirectoryError(
        fmt::format("{}: is no folder; the answers are kept in one", folder.string()));
  make_folder(folder);
  PlainFolder(folder).remove_unfinished();
}

void forget_answers(const fs::path& run, const std::set<std::string>& points) {
  const fs::path folder = answers_folder(run);
  if (!fs::is_directory(fs::symlink_status(folder))) return;
  const PlainFolder files(folder);
  for (const std::string& point : points)
    for (const std::string_view part : kParts) files.remove(answer_file(point, part));
}

}  // namespace lloyd
