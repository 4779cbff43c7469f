#include "experiments/measure/ceilings.h"

#include <fmt/format.h>
#include <unistd.h>

#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "experiments/measure/known_ceilings.h"
#include "experiments/measure/measured_ceilings.h"
#include "experiments/record/rows.h"
#include "experiments/text/table.h"
#include "experiments/text/terminal.h"
#include "experiments/text/text.h"
#include "profiling/ceilings_rounds.h"

namespace lloyd {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::ordered_json;

std::string format_value(const Json& value) {
  if (value.is_null()) return "";
  const double v = value;
  return fmt::format("{:.{}f}", v, v >= 1000 ? 0 : v >= 100 ? 1 : v >= 10 ? 2 : 3);
}

// What others on the machine did to the samples, or nothing. A rate under sustained load moves with
// the clock.
std::string disturbance(const Json& ceiling) {
  const bool sustained = ceiling.at("name").get<std::string>().ends_with(profiling::kSustained);
  if (sustained || profiling::is_steady(ceiling.at("samples").get<std::vector<double>>()))
    return "";
  return "not steady: is the machine idle?";
}

std::string table(const Json& json, const Terminal& shown) {
  Table table({{"ceiling"},
               {"median", true},
               {"95% interval"},
               {"unit"},
               {"datasheet", true},
               {"of it", true},
               {"SM MHz", true}});
  for (const Json& c : json.at("ceilings")) {
    if (c.at("value").is_null()) {
      table.add({{c.at("name").get<std::string>()}, {"-"}}, c.at("reason").get<std::string>());
      continue;
    }
    const std::string interval =
        c.at("low").is_null()
            ? ""
            : fmt::format("[{}, {}]", format_value(c.at("low")), format_value(c.at("high")));
    const Json sheet = c.value("datasheet", Json()), mhz = c.value("sm_mhz", Json());
    const std::string share =
        sheet.is_null()
            ? ""
            : fmt::format("{:.0f}%", c.at("value").get<double>() / sheet.get<double>() * 100);
    table.add({{c.at("name").get<std::string>()},
               {format_value(c.at("value"))},
               {interval},
               {c.at("unit").get<std::string>()},
               {format_value(sheet)},
               {share},
               {mhz.is_null() ? "" : fmt::format("{}", mhz.at("median").get<int>())}},
              disturbance(c));
  }
  return table.text(shown);
}

void write_file(const fs::path& path, const std::string& text) {
  std::error_code error;
  if (path.has_parent_path()) fs::create_directories(path.parent_path(), error);
  std::ofstream file(path);
  file << text;
  file.close();
  if (!file) throw std::runtime_error(fmt::format("{}: cannot be written", path.string()));
}

// Writes the file for later runs and the one of --out. Returns what to say about each.
std::vector<std::string> keep(const Json& json, const std::string& text,
                              const CeilingsOptions& options) {
  std::vector<std::string> written;
  if (const fs::path folder = ceilings_folder(); !folder.empty()) {
    const fs::path kept =
        folder /
        ((json.at("gpu").is_null() ? host_name() : json.at("gpu").at("uuid").get<std::string>()) +
         ".json");
    try {
      write_file(kept, text);
      written.push_back(kept.string() + " (later runs find it there)");
    } catch (const std::runtime_error& error) {
      if (options.out.empty()) throw;
      std::cerr << "note: not kept for later runs: " << error.what() << '\n';
    }
  } else if (options.out.empty()) {
    throw std::runtime_error(
        "nowhere to write: give --out FILE, or set HOME or LLOYDBENCH_CEILINGS");
  }
  if (!options.out.empty()) {
    const bool folder = fs::is_directory(options.out) || !options.out.has_filename();
    const fs::path file = folder ? options.out / "ceilings.json" : options.out;
    write_file(file, text);
    written.push_back(file.string());
  }
  return written;
}

}  // namespace

int run_ceilings(const DeviceQuery& gpus, const CeilingsOptions& options) {
  const profiling::Announce announce = [&](const std::string& what) {
    if (!options.quiet) std::cerr << "measuring " << what << std::endl;
  };
  const DeviceLimits* device = gpus.find(options.device);
  if (device == nullptr && !gpus.devices.empty()) {
    std::cerr << fmt::format("run_experiment: {}\n", gpus.why_no(options.device));
    return 2;
  }
  const Json json = measured_ceilings(device, gpus.problem, announce);
  const std::string text = json_text(json, 1) + '\n';
  const std::vector<std::string> written = keep(json, text, options);
  if (options.json) {
    std::cout << text;
    return 0;
  }
  if (json.at("gpu").is_null())
    std::cout << gpus.problem << '\n';
  else
    std::cout << json.at("gpu").at("name").get<std::string>() << '\n';
  std::cout << table(json, terminal(STDOUT_FILENO));
  for (const std::string& path : written) std::cout << "written: " << path << '\n';
  return 0;
}

}  // namespace lloyd
