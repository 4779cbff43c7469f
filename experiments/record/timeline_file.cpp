#include "experiments/record/timeline_file.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "experiments/record/run_files.h"
#include "experiments/text/text.h"

namespace lloyd {
namespace {

// Perfetto takes a track with the number 0, or with that of its process, for the process's main
// thread, and would draw two tracks as one. So tracks are numbered above all processes.
constexpr int kFirstTrack = 100'000;

class Tracks {
 public:
  // Returns the numbers of the point's process and of the event's track in it.
  std::pair<int, int> of(const Row& event) {
    const std::string& point = event.at("point").get_ref<const std::string&>();
    const int process =
        processes_.emplace(point, static_cast<int>(processes_.size()) + 1).first->second;
    Track track{process, "ranges", ""};
    if (event.contains("stream")) {
      track.name = "stream " + json_text(event.at("stream"));
      track.device = json_text(event.value("device", Row(0)));  // older rows have none
      devices_[process].insert(track.device);
    } else if (event.contains("thread")) {
      track.name = "CUDA calls, thread " + json_text(event.at("thread"));
    }
    return {process,
            tracks_.emplace(std::move(track), kFirstTrack + static_cast<int>(tracks_.size()))
                .first->second};
  }

  // Appends the names that the viewer shows. A point on several GPUs names them.
  void append_names(std::string& out) const {
    for (const auto& [point, process] : processes_)
      append(out, name("process_name", process, kFirstTrack, point));
    for (const auto& [track, number] : tracks_) {
      const bool several = !track.device.empty() && devices_.at(track.process).size() > 1;
      const std::string gpu = several ? "GPU " + track.device + ", " : "";
      append(out, name("thread_name", track.process, number, gpu + track.name));
    }
  }

  static void append(std::string& out, const Row& entry) {
    out += (out.empty() ? "" : ",\n") + json_text(entry);
  }

 private:
  struct Track {
    int process;
    std::string name;
    std::string device;  // empty: of the host
    bool operator<(const Track& other) const {
      return std::tie(process, name, device) < std::tie(other.process, other.name, other.device);
    }
  };

  static Row name(const char* what, int process, int track, const std::string& text) {
    return {
        {"ph", "M"}, {"name", what}, {"pid", process}, {"tid", track}, {"args", {{"name", text}}}};
  }

  std::map<std::string, int> processes_;
  std::map<Track, int> tracks_;
  std::map<int, std::set<std::string>> devices_;  // by process
};

}  // namespace

std::string timeline_file(const RunDirectory& run) {
  std::string entries;
  Tracks tracks;
  bool any = false;
  run.for_each_row(run_files::kTimeline, [&](const Row& event) {
    any = true;
    if (event.at("kind") == "trace") return;  // describes the trace, not an event
    const auto [process, track] = tracks.of(event);
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
  tracks.append_names(entries);
  return "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n" + entries + "\n]}\n";
}

}  // namespace lloyd
