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

template <typename Value>
Value parse_word(const std::string& key, const std::string& word,
                 const std::map<std::string, Value>& known) {
  const auto at = known.find(word);
  if (at != known.end()) return at->second;
  std::string list;
  for (const auto& [name, value] : known) list += (list.empty() ? "" : ", ") + name;
  throw std::runtime_error(
      fmt::format("describe: {} has {}; it may have {}", key, shown(word), list));
}

}  // namespace

VersionInfo parse_description(const std::string& name, const std::string& output,
                              std::string& unavailable) {
  const nlohmann::json json = parse_answer(output);
  if (!json.is_object())
    throw std::runtime_error(
        fmt::format("describe: prints {}, not one JSON object", shown(output)));
  const auto wrong = [](const char* key, const char* kind) {
    return std::runtime_error(fmt::format("describe: {} must be {}", key, kind));
  };
  const auto text = [&](const char* key) -> std::string {
    if (!json.contains(key) || json[key].is_null()) return "";
    if (!json[key].is_string()) throw wrong(key, "a text");
    return json[key].get<std::string>();
  };
  const auto words = [&](const char* key) {
    std::vector<std::string> all;
    if (!json.contains(key)) return all;
    if (!json[key].is_array()) throw wrong(key, "a list of texts");
    for (const nlohmann::json& word : json[key]) {
      if (!word.is_string()) throw wrong(key, "a list of texts");
      all.push_back(word.get<std::string>());
    }
    return all;
  };
  VersionInfo info;
  info.external = true;
  info.name = text("name");
  if (info.name != name)
    throw std::runtime_error(fmt::format("describe: name must be that of the file, '{}', not {}",
                                         name, shown(info.name)));
  info.family = text("family");
  if (info.family.empty() || (info.name + "_").rfind(info.family + "_", 0) != 0)
    throw std::runtime_error(fmt::format(
        "describe: family must be '{}', the part of the name before the first underscore, not {}",
        name.substr(0, name.find('_')), shown(info.family)));
  info.backend = parse_word<Backend>("backend", text("backend"),
                                     {{"cpu", Backend::cpu}, {"cuda", Backend::cuda}});
  info.parent = text("parent");
  if (!info.parent.empty() && !is_version_name(info.parent))
    throw wrong("parent", "a version's name or \"\"");
  info.axes = words("axes");
  std::map<std::string, const AxisInfo*> tunables;
  for (const AxisInfo& axis : kAxes)
    if (axis.tunable != nullptr) tunables[axis.name] = &axis;
  for (const std::string& axis : info.axes) parse_word("axes", axis, tunables);
  std::map<std::string, Precision> precisions;
  for (const Precision precision : kPrecisions)
    precisions[std::string(to_string(precision))] = precision;
  info.precisions.clear();
  for (const std::string& word : words("precisions"))
    info.precisions.push_back(parse_word("precisions", word, precisions));
  if (info.precisions.empty()) throw wrong("precisions", "a list of at least one precision");
  info.distance =
      parse_word<Distance>("distance", text("distance"),
                           {{"direct", Distance::direct}, {"expanded", Distance::expanded}});
  if (json.contains("batches")) {
    if (!json["batches"].is_boolean()) throw wrong("batches", "true or false");
    if (json["batches"] == true) info.batches = Batches::together;
  }
  info.study = text("study");
  info.summary = text("summary");
  const auto is_line = [](const std::string& words_of_it) {
    return words_of_it.size() <= kLongestLine && for_terminal(words_of_it) == words_of_it;
  };
  if (info.summary.empty() || !is_line(info.summary))
    throw wrong("summary", fmt::format("one line of text, of {} B at most", kLongestLine).c_str());
  if (!is_line(info.study))
    throw wrong("study", fmt::format("one line of text, of {} B at most", kLongestLine).c_str());
  if (!json.contains("available") || !json["available"].is_boolean())
    throw wrong("available", "true or false");
  if (json["available"] == false) {
    unavailable = shortened(text("reason"), kLongestReason);
    if (unavailable.empty()) throw wrong("reason", "a text when available is false");
  }
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
