#include "experiments/record/timeline_file.h"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "experiments/text/text.h"

namespace lloyd {
namespace {

// Perfetto takes a track with the number 0, or with that of its process, for the process's main
// thread, and would draw two tracks as one. So tracks are numbered above all processes.
constexpr int kFirstTrack = 100'000;

class Tracks {
 public:
  // Returns the numbers of the point's process and of the event's track in it. When a number is
  // new, appends the name that the viewer shows.
  std::pair<int, int> of(const Row& event, std::string& out) {
    const std::string& point = event.at("point").get_ref<const std::string&>();
    const auto [process, is_new] =
        processes_.emplace(point, static_cast<int>(processes_.size()) + 1);
    if (is_new) append(out, name("process_name", process->second, kFirstTrack, point));
    const std::string track = event.contains("stream") ? "stream " + json_text(event.at("stream"))
                              : event.contains("thread")
                                  ? "CUDA calls, thread " + json_text(event.at("thread"))
                                  : "ranges";
    const auto [number, is_new_track] = tracks_.emplace(
        std::pair(process->second, track), kFirstTrack + static_cast<int>(tracks_.size()));
    if (is_new_track) append(out, name("thread_name", process->second, number->second, track));
    return {process->second, number->second};
  }

  static void append(std::string& out, const Row& entry) {
    out += (out.empty() ? "" : ",\n") + json_text(entry);
  }

 private:
  static Row name(const char* what, int process, int track, const std::string& text) {
    return {
        {"ph", "M"}, {"name", what}, {"pid", process}, {"tid", track}, {"args", {{"name", text}}}};
  }

  std::map<std::string, int> processes_;
  std::map<std::pair<int, std::string>, int> tracks_;
};

}  // namespace

std::string timeline_file(const RunDirectory& run) {
  std::string entries;
  Tracks tracks;
  bool any = false;
  run.for_each_row("timeline.jsonl", [&](const Row& event) {
    any = true;
    if (event.at("kind") == "trace") return;  // describes the trace, not an event
    const auto [process, track] = tracks.of(event, entries);
    Row entry;
    entry["ph"] = "X";
    entry["name"] = event.at("kind") == "iteration"
                        ? "iteration " + json_text(event.at("iteration"))
                        : event.at("name").get<std::string>();
    entry["cat"] = event.at("kind");
    entry["ts"] = event.at("start_us");
    entry["dur"] = event.at("duration_us");
    entry["pid"] = process;
    entry["tid"] = track;
    for (const auto& [key, value] : event.items())
      if (key != "kind" && key != "name" && key != "start_us" && key != "duration_us" &&
          !value.is_null())
        entry["args"][key] = value;
    Tracks::append(entries, entry);
  });
  if (!any) return "";
  return "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n" + entries + "\n]}\n";
}

}  // namespace lloyd
