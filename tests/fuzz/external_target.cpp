// Target: an answer with arbitrary bytes from an external version. The parser must throw an error
// that describes the problem or return values in their ranges.
#include <cmath>
#include <stdexcept>
#include <string>

#include "experiments/measure/external_protocol.h"
#include "experiments/text/text.h"
#include "tests/fuzz/fuzz.h"

namespace lloyd::fuzz {
namespace {

constexpr const char* kName = "odd_version";
constexpr double kWaitedMs = 5;
constexpr int kAsked = 20;

bool is_line(const std::string& text) { return for_terminal(text) == text; }

void describe(const std::string& text) {
  std::string unavailable;
  const VersionInfo info = parse_description(kName, text, unavailable);
  require(info.name == kName, "another name", info.name);
  require(info.family == "odd" || info.family == kName, "another family", info.family);
  require(info.parent.empty() || is_version_name(info.parent), "a parent's name", info.parent);
  require(!info.precisions.empty(), "no precision");
  require(is_line(info.summary) && is_line(info.study), "a summary that is no line", info.summary);
  require(unavailable.size() < 3000, "a reason without a limit");
  require(unavailable.empty() || invalid_utf8(unavailable) == std::string::npos,
          "a reason that is not UTF-8", unavailable);
}

void answer(const std::string& text) {
  const nlohmann::json reply = parse_reply("run", kName, text);
  const nlohmann::json copy = reply;
  require(nlohmann::json::parse(json_text(copy)) == reply, "an answer that is not read back", text);
  for (const char* key : {"setup_ms", "fetch_ms", "transfer_ms"})
    if (const auto ms = milliseconds(reply, key))
      require(std::isfinite(*ms) && *ms >= 0, "no duration", key);
  const RunReply run = parse_run_reply(reply, kWaitedMs, kAsked);
  require(run.iterations >= 1 && run.iterations <= kAsked, "iterations that were not asked for");
  require(run.solve_ms > 0 && run.solve_ms <= kWaitedMs + 1, "a time that cannot be");
}

}  // namespace
}  // namespace lloyd::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lloyd;
  using namespace lloyd::fuzz;
  // The callers make the text valid UTF-8.
  const std::string text = valid_utf8(std::string_view(reinterpret_cast<const char*>(data), size));
  for (const auto parse : {describe, answer}) {
    try {
      parse(text);
    } catch (const std::runtime_error& error) {  // includes Unsupported
      require_message(error.what());
    }
  }
  return 0;
}
