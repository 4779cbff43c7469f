// What a point of the plan stands for.
#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "experiments/spec/spec.h"
#include "experiments/text/or_null.h"
#include "experiments/text/text.h"
#include "kernels/core/device_memory.h"

namespace lloyd {
namespace {

const data::NamedSource& of_name(const std::string& name, const data::Sources& sources) {
  const auto found = std::ranges::find(sources, name, &data::NamedSource::name);
  if (found == sources.end()) throw std::logic_error("no source is called " + in_quotes(name));
  return *found;
}

}  // namespace

Problem Point::problem(const Stop& stop) const {
  Problem problem;
  problem.n = n;
  problem.k = k;
  problem.dim = dim;
  problem.batch = batch;
  problem.precision = precision;
  problem.stop = stop;
  return problem;
}

std::string Point::inputs() const {
  const auto text = [](const std::optional<std::uint64_t>& seed) {
    return seed ? std::to_string(*seed) : "-";
  };
  return fmt::format("{}/{}/{}/{}/{}/{}/{}/{}", n, k, dim, batch, data, text(data_seed), init,
                     text(init_seed));
}

Point Point::restarted(int number) const {
  Point point = *this;
  point.restart = number;
  if (point.init_seed) *point.init_seed += static_cast<std::uint64_t>(number);
  return point;
}

Point Point::alone(int index) const {
  Point point = *this;
  point.batch = 1;
  if (point.data_seed) *point.data_seed += static_cast<std::uint64_t>(index);
  if (point.init_seed) *point.init_seed += static_cast<std::uint64_t>(index);
  return point;
}

data::Source Point::source(const data::Sources& sources) const {
  data::Source source = of_name(data, sources).source;
  if (data_seed) source.seed = *data_seed;
  return source;
}

data::Extent Point::extent(const data::Sources& sources) const {
  return of_name(data, sources).extent;
}

data::Init Point::initial(data::Init all) const {
  all.method = init;
  if (init_seed) all.seed = *init_seed;
  return all;
}

Tunables Point::tunables() const {
  Tunables tunables;
  for (const PointTunable& axis : kPointTunables)
    if (this->*axis.value) axis.set(tunables, *(this->*axis.value));
  tunables.device_memory = bytes_of_device_memory(tunables.device_memory);
  return tunables;
}

int most_gpus(const std::vector<Point>& points) {
  int most = 1;
  for (const Point& point : points) most = std::max(most, point.all_gpus());
  return most;
}

nlohmann::json to_json(const Point& point) {
  nlohmann::json json = {
      {"point", point.id},
      {"version", point.version},
      {"n", point.n},
      {"k", point.k},
      {"dim", point.dim},
      {"batch", point.batch},
      {"precision", to_string(point.precision)},
      {"data_name", or_null<nlohmann::json>(point.data)},
      {"init", point.init},
      {"init_seed", or_null<nlohmann::json>(point.init_seed)},
      {"host_memory", or_null<nlohmann::json>(point.host_memory)},
      {"data_seed", or_null<nlohmann::json>(point.data_seed)},
      {"available", point.available},
      {"reason", point.available ? nlohmann::json(nullptr) : nlohmann::json(point.reason)}};
  for (const PointTunable& axis : kPointTunables)
    json[axis.name] = or_null<nlohmann::json>(point.*axis.value);
  return json;
}

}  // namespace lloyd
