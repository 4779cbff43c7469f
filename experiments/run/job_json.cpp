// The messages of job.h as JSON. fields() names each field of a message once, for both directions.
// (NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE of nlohmann/json 3.11.2 would do it for nlohmann::json only.
// A reply has rows, which keep the order of their keys.)
#include <concepts>
#include <type_traits>

#include "experiments/run/job.h"

namespace lloyd {
namespace {

template <typename T, typename Message>
concept Either = std::same_as<std::remove_const_t<T>, Message>;  // to be written or read

void fields(Either<data::Source> auto& source, auto field) {
  field("generator", source.generator);
  field("seed", source.seed);
  field("low", source.low);
  field("high", source.high);
  field("centers", source.centers);
  field("sigma", source.sigma);
  field("file", source.file);
  field("format", source.format);
  field("header", source.header);
  field("delimiter", source.delimiter);
  field("decimal", source.decimal);
  field("index_column", source.index_column);
  field("label_column", source.label_column);
  field("columns", source.columns);
  field("array", source.array);
  field("mapped", source.mapped);
  field("unit_length", source.unit_length);
}

void fields(Either<data::Extent> auto& extent, auto field) {
  field("n", extent.n);
  field("dim", extent.dim);
}

void fields(Either<data::NamedSource> auto& named, auto field) {
  field("name", named.name);
  field("source", named.source);
  field("extent", named.extent);
}

void fields(Either<data::Init> auto& init, auto field) {
  field("method", init.method);
  field("seed", init.seed);
  field("file", init.file);
}

void fields(Either<Stop> auto& stop, auto field) {
  field("iterations", stop.iterations);
  field("tolerance", stop.tolerance);
  field("min_changes", stop.min_changes);
}

/// Without what only the supervisor needs.
void fields(Either<Measure> auto& measure, auto field) {
  field("warmup", measure.warmup);
  field("repetitions", measure.repetitions);
  field("max_noise", measure.max_noise);
  field("max_seconds", measure.max_seconds);
  field("l2_cold", measure.l2_cold);
  field("verify", measure.verify);
  field("verify_sample", measure.verify_sample);
  field("retry_throttled", measure.retry_throttled);
  field("warm_seconds", measure.warm_seconds);
}

void fields(Either<Profile> auto& profile, auto field) {
  field("nvtx", profile.nvtx);
  field("counters", profile.counters);
  field("timeline", profile.timeline);
  field("cpu", profile.cpu);
}

void fields(Either<DeviceLimits> auto& device, auto field) {
  field("index", device.index);
  field("name", device.name);
  field("uuid", device.uuid);
  field("compute_capability", device.compute_capability);
  field("multiprocessors", device.multiprocessors);
  field("max_threads_per_block", device.max_threads_per_block);
  field("shared_bytes", device.shared_bytes);
  field("shared_bytes_optin", device.shared_bytes_optin);
  field("memory_bytes", device.memory_bytes);
  field("team", device.team);
}

void fields(Either<Job> auto& job, auto field) {
  field("data", job.data);
  field("init", job.init);
  field("stop", job.stop);
  field("restarts", job.restarts);
  field("measure", job.measure);
  field("profile", job.profile);
  field("pass", job.pass);
  field("experiment", job.experiment);
  field("device", job.device);
  field("team", job.team);
  field("points", job.points);
  field("save", job.save);
  field("answers", job.answers);
  field("cores", job.cores);
  field("binding", job.binding);
  field("node", job.node);
  field("shard", job.shard);
  field("no_energy", job.no_energy);
  field("supervisor", job.supervisor);
}

void fields(Either<Request> auto& request, auto field) {
  field("point", request.point);
  field("expected", request.expected);
  field("launch", request.turn.launch);
  field("restart", request.turn.restart);
  field("taken", request.taken);
  field("to_beat", request.to_beat);
}

void fields(Either<Reply> auto& reply, auto field) {
  field("measurements", reply.measurements);
  field("phases", reply.phases);
  field("counters", reply.counters);
  field("events", reply.events);
  field("convergence", reply.convergence);
  field("step", reply.step);
  field("status", reply.status);
  field("reason", reply.reason);
  field("expected", reply.expected);
  field("energy_j", reply.energy_j);
  field("needs_restart", reply.needs_restart);
  field("last", reply.last);
}

template <typename T>
concept HasFields = requires(T& value) {
  fields(value, [](const char*, auto&) {});
};

template <typename Json>
struct Writer {
  template <typename T>
  static Json json_of(const T& value) {
    if constexpr (HasFields<const T>) {
      Json object;
      fields(value, [&](const char* name, const auto& field) { object[name] = json_of(field); });
      return object;
    } else {
      return value;
    }
  }
  template <typename T>
  static Json json_of(const std::optional<T>& value) {
    return value ? json_of(*value) : Json(nullptr);
  }
  template <typename T>
  static Json json_of(const std::vector<T>& values) {
    Json list = Json::array();
    for (const T& value : values) list.push_back(json_of(value));
    return list;
  }
  static Json json_of(const std::filesystem::path& path) { return path.string(); }
  static Json json_of(Pass pass) { return to_string(pass); }
  static Json json_of(const data::Column& column) { return to_json(column); }
  static Json json_of(const Point& point) { return to_json(point); }
  static Json json_of(const ExpectedRun& run) { return to_json(run); }
};

template <typename Json>
struct Reader {
  template <typename T>
  static void read(const Json& json, T& value) {
    if constexpr (HasFields<T>)
      fields(value, [&](const char* name, auto& field) { read(json.at(name), field); });
    else
      value = json.template get<T>();
  }
  template <typename T>
  static void read(const Json& json, std::optional<T>& value) {
    value.reset();
    if (!json.is_null()) read(json, value.emplace());
  }
  template <typename T>
  static void read(const Json& json, std::vector<T>& values) {
    values.clear();
    for (const Json& element : json) read(element, values.emplace_back());
  }
  static void read(const Json& json, std::filesystem::path& path) {
    path = json.template get<std::string>();
  }
  static void read(const Json& json, Pass& pass) {
    pass = parse_pass(json.template get<std::string>());
  }
  static void read(const Json& json, data::Column& column) {
    if (json.is_string())
      column = json.template get<std::string>();
    else
      column = json.template get<int>();
  }
  static void read(const Json& json, Point& point) { point = point_from_json(json); }
  static void read(const Json& json, ExpectedRun& run) { run = expected_run_from_json(json); }
};

template <typename Message, typename Json>
Message message_from(const Json& json) {
  Message message;
  Reader<Json>::read(json, message);
  return message;
}

}  // namespace

nlohmann::json to_json(const Job& job) { return Writer<nlohmann::json>::json_of(job); }
Job job_from_json(const nlohmann::json& json) { return message_from<Job>(json); }

nlohmann::json to_json(const Request& request) { return Writer<nlohmann::json>::json_of(request); }
Request request_from_json(const nlohmann::json& json) { return message_from<Request>(json); }

nlohmann::ordered_json to_json(const Reply& reply) {
  return Writer<nlohmann::ordered_json>::json_of(reply);
}
Reply reply_from_json(const nlohmann::ordered_json& json) { return message_from<Reply>(json); }

}  // namespace lloyd
