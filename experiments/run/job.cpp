#include "experiments/run/job.h"

#include <stdexcept>

#include "experiments/text/text.h"

namespace lloyd {
namespace {

template <typename T>
void read(const nlohmann::json& object, const char* key, std::optional<T>& value) {
  if (const nlohmann::json& field = object.at(key); !field.is_null()) value = field.get<T>();
}

}  // namespace

Point point_from_json(const nlohmann::json& j) {
  Point p;
  p.id = j.at("point");
  p.version = j.at("version");
  p.n = j.at("n");
  p.k = j.at("k");
  p.dim = j.at("dim");
  p.batch = j.value("batch", 1);  // older plans have none
  const auto name = j.at("precision").get<std::string>();
  const std::optional<Precision> precision = parse_precision(name);
  if (!precision) throw std::invalid_argument("no precision is called " + in_quotes(name));
  p.precision = *precision;
  for (const PointTunable& axis : kPointTunables) read(j, axis.name, p.*axis.value);
  if (!j.at("data_name").is_null()) p.data = j.at("data_name");
  p.init = j.at("init");
  read(j, "init_seed", p.init_seed);
  read(j, "data_seed", p.data_seed);
  if (!j.at("host_memory").is_null()) p.host_memory = j.at("host_memory");
  p.available = j.at("available");
  if (!p.available) p.reason = j.at("reason");
  return p;
}

Point point_of(const Job& job, const Request& request) {
  const Point& point = job.points.at(request.point);
  return job.restarts > 1 ? point.restarted(request.turn.restart) : point;
}

RowSource row_source(const Job& job, const Point& point) {
  const bool on_gpu = find_version(point.version)->info.backend == Backend::cuda;
  return {point.source(job.data).describe(),
          point.data_seed,
          job.cores,
          point.extent(job.data),
          job.binding,
          job.node,
          job.shard,
          on_gpu ? first_gpus(job.team, point.all_gpus()) : std::vector<std::string>{}};
}

Row unmeasured_row(const Job& job, const Request& request, const std::string& status,
                   const std::string& reason) {
  const Point point = point_of(job, request);
  Row row = unmeasured_row(point, row_source(job, point), job.device, status, reason);
  row["launch"] = request.turn.launch;
  return row;
}

Reply failed_reply(const Job& job, const Request& request, const std::string& status,
                   const std::string& reason) {
  Reply reply;
  reply.status = status;
  reply.reason = reason;
  reply.needs_restart = true;
  if (job.pass == Pass::timing)
    reply.measurements = {unmeasured_row(job, request, status, reason)};
  else
    reply.counters =
        missing_counters(point_of(job, request), job.pass, job.profile, status, reason);
  return reply;
}

}  // namespace lloyd
