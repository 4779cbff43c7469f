#include "experiments/measure/external_protocol.h"

#include <fmt/format.h>

#include <map>
#include <stdexcept>

#include "experiments/text/text.h"
#include "kernels/core/axes.h"
#include "kernels/core/status.h"

namespace lloyd {
namespace {

// The clocks of two processes may differ by this much, reading them included.
constexpr double kClockSlackMs = 1;
constexpr double kLeastIterationMs = 1e-6;

constexpr std::size_t kLongestReason = 2000, kLongestLine = 300;

/// Returns discarded JSON if `text` is not JSON or is nested too deeply.
nlohmann::json parse_answer(const std::string& text) {
  return nested_too_deeply(text) ? nlohmann::json(nlohmann::json::value_t::discarded)
                                 : nlohmann::json::parse(text, nullptr, false);
}

/// The part of an invalid answer that the user sees.
std::string shown(const std::string& text) { return in_quotes(text.substr(0, text.find('\n'))); }

/// The fields of the answer to `describe`. Each function throws std::runtime_error with the name of
/// the field if its value is not of the right kind.
class Description {
 public:
  explicit Description(const std::string& output) : json_(parse_answer(output)) {
    if (!json_.is_object())
      throw std::runtime_error(
          fmt::format("describe: prints {}, not one JSON object", shown(output)));
  }

  /// Empty if the field is missing or null.
  std::string text(const char* key) const {
    if (!json_.contains(key) || json_[key].is_null()) return "";
    if (!json_[key].is_string()) throw wrong(key, "a text");
    return json_[key].get<std::string>();
  }
  /// A text that fits into a table.
  std::string line(const char* key) const {
    const std::string line = text(key);
    if (line.size() > kLongestLine || for_terminal(line) != line) throw not_a_line(key);
    return line;
  }
  std::vector<std::string> words(const char* key) const {
    std::vector<std::string> all;
    if (!json_.contains(key)) return all;
    if (!json_[key].is_array()) throw wrong(key, "a list of texts");
    for (const nlohmann::json& word : json_[key]) {
      if (!word.is_string()) throw wrong(key, "a list of texts");
      all.push_back(word.get<std::string>());
    }
    return all;
  }
  /// nullopt if the field is missing.
  std::optional<bool> flag(const char* key) const {
    if (!json_.contains(key)) return std::nullopt;
    if (!json_[key].is_boolean()) throw wrong(key, "true or false");
    return json_[key].get<bool>();
  }
  template <typename Value>
  Value one_of(const char* key, const std::map<std::string, Value>& known) const {
    return known_value(key, text(key), known);
  }
  template <typename Value>
  std::vector<Value> all_of(const char* key, const std::map<std::string, Value>& known) const {
    std::vector<Value> values;
    for (const std::string& word : words(key)) values.push_back(known_value(key, word, known));
    return values;
  }

  static std::runtime_error wrong(const char* key, const std::string& kind) {
    return std::runtime_error(fmt::format("describe: {} must be {}", key, kind));
  }
  static std::runtime_error not_a_line(const char* key) {
    return wrong(key, fmt::format("one line of text, of {} B at most", kLongestLine));
  }

 private:
  template <typename Value>
  static Value known_value(const char* key, const std::string& word,
                           const std::map<std::string, Value>& known) {
    const auto at = known.find(word);
    if (at != known.end()) return at->second;
    std::string list;
    for (const auto& [name, value] : known) list += (list.empty() ? "" : ", ") + name;
    throw std::runtime_error(
        fmt::format("describe: {} has {}; it may have {}", key, shown(word), list));
  }

  nlohmann::json json_;
};

/// The name that the version gives itself, which must be that of its file.
std::string own_name(const Description& told, const std::string& name) {
  const std::string own = told.text("name");
  if (own != name)
    throw std::runtime_error(
        fmt::format("describe: name must be that of the file, '{}', not {}", name, shown(own)));
  return own;
}

std::string family_in(const Description& told, const std::string& name) {
  const std::string family = told.text("family");
  if (family.empty() || (name + "_").rfind(family + "_", 0) != 0)
    throw std::runtime_error(fmt::format(
        "describe: family must be '{}', the part of the name before the first underscore, not {}",
        name.substr(0, name.find('_')), shown(family)));
  return family;
}

std::string parent_in(const Description& told) {
  const std::string parent = told.text("parent");
  if (!parent.empty() && !is_version_name(parent))
    throw Description::wrong("parent", "a version's name or \"\"");
  return parent;
}

std::vector<std::string> tunables_in(const Description& told) {
  std::map<std::string, std::string> tunables;
  for (const AxisInfo& axis : kAxes)
    if (axis.tunable != nullptr) tunables[axis.name] = axis.name;
  return told.all_of("axes", tunables);
}

std::vector<Precision> precisions_in(const Description& told) {
  std::map<std::string, Precision> known;
  for (const Precision precision : kPrecisions)
    known[std::string(to_string(precision))] = precision;
  const std::vector<Precision> precisions = told.all_of("precisions", known);
  if (precisions.empty())
    throw Description::wrong("precisions", "a list of at least one precision");
  return precisions;
}

std::string summary_in(const Description& told) {
  const std::string summary = told.line("summary");
  if (summary.empty()) throw Description::not_a_line("summary");
  return summary;
}

/// Empty if the version can run.
std::string why_unavailable(const Description& told) {
  const std::optional<bool> available = told.flag("available");
  if (!available) throw Description::wrong("available", "true or false");
  if (*available) return "";
  const std::string reason = shortened(told.text("reason"), kLongestReason);
  if (reason.empty()) throw Description::wrong("reason", "a text when available is false");
  return reason;
}

}  // namespace

VersionInfo parse_description(const std::string& name, const std::string& output,
                              std::string& unavailable) {
  const Description told(output);
  VersionInfo info;
  info.external = true;
  info.name = own_name(told, name);
  info.family = family_in(told, name);
  info.backend = told.one_of<Backend>("backend", {{"cpu", Backend::cpu}, {"cuda", Backend::cuda}});
  info.parent = parent_in(told);
  info.axes = tunables_in(told);
  info.precisions = precisions_in(told);
  info.distance = told.one_of<Distance>(
      "distance", {{"direct", Distance::direct}, {"expanded", Distance::expanded}});
  if (told.flag("batches") == true) info.batches = Batches::together;
  info.summary = summary_in(told);
  info.study = told.line("study");
  unavailable = why_unavailable(told);
  return info;
}

nlohmann::json parse_reply(const std::string& what, const std::string& name,
                           const std::string& line) {
  const auto fail = [&](const std::string& how) {
    return std::runtime_error(fmt::format("{}: {}", what, how));
  };
  nlohmann::json reply = parse_answer(line);
  if (!reply.is_object() || !reply.contains("ok") || !reply["ok"].is_boolean())
    throw fail(fmt::format("{} answered {}, which is not the protocol's JSON", name, shown(line)));
  if (reply["ok"] == true) return reply;
  const auto text = [&](const char* key) {
    return reply.contains(key) && reply[key].is_string() ? reply[key].get<std::string>() : "";
  };
  const std::string reason =
      text("reason").empty() ? "gives no reason" : shortened(text("reason"), kLongestReason);
  if (text("status") == status::unsupported) throw Unsupported(reason);
  throw fail(reason);
}

std::optional<double> milliseconds(const nlohmann::json& reply, const char* key) {
  if (!reply.contains(key) || reply[key].is_null()) return std::nullopt;
  if (!reply[key].is_number() || !(reply[key].get<double>() >= 0))
    throw std::runtime_error(
        fmt::format("reports {} = {}, which is not a duration", key, json_text(reply[key])));
  return reply[key].get<double>();
}

RunReply parse_run_reply(const nlohmann::json& reply, double waited_ms, int asked) {
  const auto solve_ms = milliseconds(reply, "solve_ms");
  if (!solve_ms || !reply.contains("iterations") || !reply["iterations"].is_number_integer())
    throw std::runtime_error("run: reports no solve_ms and iterations");
  const nlohmann::json& told = reply["iterations"];
  const int iterations = as_int(told).value_or(0);
  if (iterations < 1 || iterations > asked)
    throw std::runtime_error(
        fmt::format("run: reports {} iterations, but 1 to {} were asked for", told.dump(), asked));
  if (*solve_ms > waited_ms + kClockSlackMs)
    throw std::runtime_error(
        fmt::format("run: reports {:.3f} ms, but answered after {:.3f} ms", *solve_ms, waited_ms));
  if (*solve_ms < iterations * kLeastIterationMs)
    throw std::runtime_error(fmt::format(
        "run: reports {} ms for {} iterations, but was waited for {:.6g} ms: nothing makes an "
        "iteration in less than a nanosecond",
        *solve_ms, iterations, waited_ms));
  return {*solve_ms, iterations};
}

}  // namespace lloyd
