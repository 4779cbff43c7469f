#include "experiments/run/job.h"

namespace lloyd {
namespace {

template <typename T, typename Json>
void read(const Json& object, const char* key, std::optional<T>& value) {
  if (const auto& field = object.at(key); !field.is_null()) value = field.template get<T>();
}

nlohmann::json column_or_null(const std::optional<data::Column>& column) {
  return column ? to_json(*column) : nlohmann::json(nullptr);
}

data::Column column_from(const nlohmann::json& j) {
  if (j.is_string()) return j.get<std::string>();
  return j.get<int>();
}

void read(const nlohmann::json& object, const char* key, std::optional<data::Column>& column) {
  if (const nlohmann::json& field = object.at(key); !field.is_null()) column = column_from(field);
}

nlohmann::json source_json(const data::Source& s) {
  nlohmann::json columns = nlohmann::json::array();
  for (const data::Column& column : s.columns) columns.push_back(to_json(column));
  return {{"generator", s.generator},
          {"seed", s.seed},
          {"low", or_null<nlohmann::json>(s.low)},
          {"high", or_null<nlohmann::json>(s.high)},
          {"centers", or_null<nlohmann::json>(s.centers)},
          {"sigma", or_null<nlohmann::json>(s.sigma)},
          {"file", s.file.string()},
          {"format", s.format},
          {"header", or_null<nlohmann::json>(s.header)},
          {"delimiter", static_cast<int>(s.delimiter)},
          {"decimal", static_cast<int>(s.decimal)},
          {"index_column", column_or_null(s.index_column)},
          {"label_column", column_or_null(s.label_column)},
          {"columns", columns},
          {"array", s.array},
          {"mapped", s.mapped},
          {"unit_length", s.unit_length}};
}

data::Source source_from(const nlohmann::json& j) {
  data::Source s;
  s.generator = j.at("generator");
  s.seed = j.at("seed");
  read(j, "low", s.low);
  read(j, "high", s.high);
  read(j, "centers", s.centers);
  read(j, "sigma", s.sigma);
  s.file = j.at("file").get<std::string>();
  s.format = j.at("format");
  read(j, "header", s.header);
  s.delimiter = static_cast<char>(j.at("delimiter").get<int>());
  s.decimal = static_cast<char>(j.at("decimal").get<int>());
  read(j, "index_column", s.index_column);
  read(j, "label_column", s.label_column);
  for (const nlohmann::json& column : j.at("columns")) s.columns.push_back(column_from(column));
  s.array = j.at("array");
  s.mapped = j.at("mapped");
  s.unit_length = j.at("unit_length");
  return s;
}

nlohmann::json sources_json(const data::Sources& sources) {
  nlohmann::json list = nlohmann::json::array();
  for (const data::NamedSource& each : sources)
    list.push_back({{"name", each.name},
                    {"source", source_json(each.source)},
                    {"extent", {each.extent.n, each.extent.dim}}});
  return list;
}

data::Sources sources_from(const nlohmann::json& j) {
  data::Sources sources;
  for (const nlohmann::json& each : j)
    sources.push_back({.name = each.at("name"),
                       .source = source_from(each.at("source")),
                       .extent = {each.at("extent").at(0), each.at("extent").at(1)}});
  return sources;
}

nlohmann::json device_json(const DeviceLimits& d) {
  return {{"index", d.index},
          {"name", d.name},
          {"uuid", d.uuid},
          {"compute_capability", d.compute_capability},
          {"multiprocessors", d.multiprocessors},
          {"max_threads_per_block", d.max_threads_per_block},
          {"shared_bytes", d.shared_bytes},
          {"shared_bytes_optin", d.shared_bytes_optin},
          {"memory_bytes", d.memory_bytes},
          {"team", d.team}};
}

DeviceLimits device_from(const nlohmann::json& j) {
  DeviceLimits d;
  d.index = j.at("index");
  d.name = j.at("name");
  d.uuid = j.at("uuid");
  d.compute_capability = j.at("compute_capability");
  d.multiprocessors = j.at("multiprocessors");
  d.max_threads_per_block = j.at("max_threads_per_block");
  d.shared_bytes = j.at("shared_bytes");
  d.shared_bytes_optin = j.at("shared_bytes_optin");
  d.memory_bytes = j.at("memory_bytes");
  d.team = j.at("team").get<std::vector<int>>();
  return d;
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
  p.precision = *parse_precision(j.at("precision").get<std::string>());
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

namespace {

template <typename Json>
Json expected_json(const std::vector<ExpectedRun>& expected) {
  Json runs = Json::array();
  for (const ExpectedRun& run : expected) runs.push_back(Json(to_json(run)));
  return runs;
}

std::vector<ExpectedRun> expected_from(const nlohmann::json& j) {
  std::vector<ExpectedRun> expected;
  for (const nlohmann::json& run : j) expected.push_back(expected_run_from_json(run));
  return expected;
}

}  // namespace

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

nlohmann::json to_json(const Job& job) {
  nlohmann::json points = nlohmann::json::array();
  for (const Point& point : job.points) points.push_back(to_json(point));
  const Measure& m = job.measure;
  return {{"data", sources_json(job.data)},
          {"init",
           {{"method", job.init.method},
            {"seed", job.init.seed},
            {"file", source_json(job.init.file)}}},
          {"stop",
           {{"iterations", job.stop.iterations},
            {"tolerance", job.stop.tolerance},
            {"min_changes", job.stop.min_changes}}},
          {"restarts", job.restarts},
          {"measure",
           {{"warmup", m.warmup},
            {"repetitions", m.repetitions},
            {"max_noise", m.max_noise},
            {"max_seconds", m.max_seconds},
            {"l2_cold", m.l2_cold},
            {"verify", m.verify},
            {"verify_sample", m.verify_sample},
            {"retry_throttled", m.retry_throttled},
            {"warm_seconds", m.warm_seconds}}},
          {"profile",
           {{"nvtx", job.profile.nvtx},
            {"counters", job.profile.counters},
            {"timeline", job.profile.timeline},
            {"cpu", job.profile.cpu}}},
          {"pass", to_string(job.pass)},
          {"experiment", job.experiment},
          {"device", job.device ? device_json(*job.device) : nlohmann::json(nullptr)},
          {"team", job.team},
          {"points", points},
          {"save", job.save},
          {"answers", job.answers.string()},
          {"cores", job.cores},
          {"binding", job.binding},
          {"node", job.node},
          {"shard", job.shard},
          {"no_energy", job.no_energy},
          {"supervisor", job.supervisor}};
}

Job job_from_json(const nlohmann::json& j) {
  Job job;
  job.data = sources_from(j.at("data"));
  const nlohmann::json& init = j.at("init");
  job.init = {init.at("method"), init.at("seed"), source_from(init.at("file"))};
  const nlohmann::json& stop = j.at("stop");
  job.stop = {stop.at("iterations"), stop.at("tolerance"), stop.at("min_changes")};
  job.restarts = j.at("restarts");
  const nlohmann::json& m = j.at("measure");
  job.measure.warmup = m.at("warmup");
  job.measure.repetitions = m.at("repetitions");
  job.measure.max_noise = m.at("max_noise");
  job.measure.max_seconds = m.at("max_seconds");
  job.measure.l2_cold = m.at("l2_cold");
  job.measure.verify = m.at("verify");
  job.measure.verify_sample = m.at("verify_sample");
  job.measure.retry_throttled = m.at("retry_throttled");
  job.measure.warm_seconds = m.at("warm_seconds");
  const nlohmann::json& profile = j.at("profile");
  job.profile = {profile.at("nvtx"), profile.at("counters"), profile.at("timeline"),
                 profile.at("cpu")};
  job.pass = parse_pass(j.at("pass").get<std::string>());
  job.experiment = j.at("experiment");
  if (!j.at("device").is_null()) job.device = device_from(j.at("device"));
  job.team = j.at("team").get<std::vector<std::string>>();
  for (const nlohmann::json& point : j.at("points")) job.points.push_back(point_from_json(point));
  job.save = j.at("save").get<std::vector<std::string>>();
  job.answers = j.at("answers").get<std::string>();
  job.cores = j.at("cores");
  job.binding = j.at("binding");
  job.node = j.at("node");
  job.shard = j.at("shard");
  job.no_energy = j.at("no_energy");
  job.supervisor = j.at("supervisor");
  return job;
}

nlohmann::json to_json(const Request& request) {
  return {{"point", request.point},
          {"expected", expected_json<nlohmann::json>(request.expected)},
          {"launch", request.turn.launch},
          {"restart", request.turn.restart},
          {"taken", request.taken},
          {"to_beat", or_null<nlohmann::json>(request.to_beat)}};
}

Request request_from_json(const nlohmann::json& j) {
  Request request{j.at("point"),
                  expected_from(j.at("expected")),
                  {j.at("launch"), j.at("restart")},
                  j.at("taken"),
                  {}};
  read(j, "to_beat", request.to_beat);
  return request;
}

nlohmann::ordered_json to_json(const Reply& reply) {
  return {{"measurements", reply.measurements},
          {"phases", reply.phases},
          {"counters", reply.counters},
          {"events", reply.events},
          {"convergence", reply.convergence},
          {"status", reply.status},
          {"reason", reply.reason},
          {"expected", expected_json<nlohmann::ordered_json>(reply.expected)},
          {"energy_j", or_null(reply.energy_j)},
          {"needs_restart", reply.needs_restart},
          {"last", reply.last}};
}

Reply reply_from_json(const nlohmann::ordered_json& j) {
  return {j.at("measurements"),
          j.at("phases"),
          j.at("counters"),
          j.at("events"),
          j.at("convergence"),
          j.at("status"),
          j.at("reason"),
          expected_from(j.at("expected")),
          j.at("energy_j").is_null() ? std::nullopt : std::optional(j.at("energy_j").get<double>()),
          j.at("needs_restart"),
          j.at("last")};
}

}  // namespace lloyd
