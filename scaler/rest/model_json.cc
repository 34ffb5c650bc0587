#include "scaler/rest/model_json.h"

#include "base/status.h"
#include "scaler/core/orders.h"
#include "scaler/rest/internal/dataset_fields.h"
#include "scaler/rest/internal/fields.h"

namespace muster::scaler::rest {

using internal::Is;
using internal::JsonFields;
using internal::ReadFields;
using internal::SchemaFields;

// What /openapi.json says of every field. Meanings are given where name and unit do not say it all.
// Static instead of in an unnamed namespace, where argument-dependent lookup would not find them.

static const char* NameOf(const Resources&) {
  return "Resources";
}
template <typename F, Is<Resources> T>
static void Describe(F& f, T& r) {
  f.Field("cpus", r.cpus, "Processors; 0: not limited");
  f.Field("memory_bytes", r.memory_bytes, "0: not limited");
}

static const char* NameOf(const Progress&) {
  return "Progress";
}
template <typename F, Is<Progress> T>
static void Describe(F& f, T& p) {
  f.Field("records_expected", p.records_expected, "Of all training epochs");
  f.Field("records_done", p.records_done, "Committed ones included; goes back when a server dies");
  f.Field("records_committed", p.records_committed, "Never goes back");
  f.Field("records_per_second", p.records_per_second, "Over the newest seconds");
  f.Field("remaining_seconds", p.remaining_seconds, "null: not known yet");
}

static const char* NameOf(const Job&) {
  return "Job";
}
template <typename F, Is<Job> T>
static void Describe(F& f, T& j) {
  f.Field("name", j.name, "");
  f.Field("id", j.id, "Drawn at random when the job began");
  f.Choice("state", j.state,
           {"running", "draining", "drained", "succeeded", "failed", "cancelled", "stopped"}, "");
  f.Field("reason", j.reason, "The root cause of a job that failed; else empty");
  f.Field("master_incarnation", j.master_incarnation, "");
  f.Field("uptime_ms", j.uptime_ms, "Of this master process");
  f.Field("seen_wall_us", j.seen_wall_us,
          "When the master said so: microseconds since the Unix epoch; 0: it never answered");
  f.Field("master_reachable", j.master_reachable, "false: what is shown is the last that is known");
  f.Field("progress", j.progress, "");
  f.Field("counters", j.counters, "Running totals of the job by name");
  f.Field("last_event_id", j.last_event_id, "0: none");
  f.Field("scaler_started_wall_us", j.scaler_started_wall_us, "");
  f.Field("workers_wanted", j.workers_wanted,
          "How many workers there are to be; those that start, or are down, are among them");
  f.Field("workers_min", j.workers_min, "The least that `workers/scale` takes");
  f.Field("workers_max", j.workers_max, "The most that `workers/scale` takes");
  f.Field("limits_remark", j.limits_remark,
          "Empty: the kernel enforces limits; else what is missing, why, and what to do about it");
}

static const char* NameOf(const Shard&) {
  return "Shard";
}
template <typename F, Is<Shard> T>
static void Describe(F& f, T& s) {
  f.Field("id", s.id, "dataset/epoch/index, numbers from 0");
  f.Field("dataset", s.dataset, "Its name");
  f.Field("epoch", s.epoch, "");
  f.Field("index", s.index, "Position in the order in which shards run");
  f.Choice("state", s.state, {"leased", "done", "failed"}, "");
  f.Field("worker", s.worker, "Of a lease");
  f.Field("phase", s.phase, "Of a lease");
  f.Field("minibatches_started", s.minibatches_started, "");
  f.Field("failures", s.failures, "Of the trainer");
  f.Field("node_failures", s.node_failures, "Of nodes, charged to nobody");
  f.Field("reasons", s.reasons, "One per failure");
  f.Field("age_ms", s.age_ms, "In this state");
  f.Field("source", s.source, "The file, or topic[partition]");
  f.Field("first_record", s.first_record,
          "From 0, without the header; of a topic the first offset");
  f.Field("records", s.records, "Of a topic: offsets");
  f.Field("first_line", s.first_line, "From 1; 0: a topic");
}

static const char* NameOf(const ShardPage&) {
  return "ShardPage";
}
template <typename F, Is<ShardPage> T>
static void Describe(F& f, T& p) {
  f.Field("total", p.total, "On all pages");
  f.Field("offset", p.offset, "Of the first one here");
  f.Field("shards", p.shards, "May be fewer than asked for: go on at offset plus their number");
}

static const char* NameOf(const ShardRun&) {
  return "ShardRun";
}
template <typename F, Is<ShardRun> T>
static void Describe(F& f, T& r) {
  f.Field("begin", r.begin, "Index of the first shard");
  f.Field("end", r.end, "Index after the last one");
  f.Choice("state", r.state, {"todo", "leased", "done", "committed", "failed"}, "");
}

static const char* NameOf(const ShardMap&) {
  return "ShardMap";
}
template <typename F, Is<ShardMap> T>
static void Describe(F& f, T& m) {
  f.Field("dataset", m.dataset, "");
  f.Field("epoch", m.epoch, "");
  f.Field("shards", m.shards, "How many the epoch has");
  f.Field("runs", m.runs, "Neighbours in one state, ascending, without gaps");
}

static const char* NameOf(const Usage&) {
  return "Usage";
}
template <typename F, Is<Usage> T>
static void Describe(F& f, T& u) {
  f.Field("cpus", u.cpus, "Processors in use, over the newest seconds");
  f.Field("throttled_ratio", u.throttled_ratio, "Of the time, held up by its CPU limit: 0 to 1");
  f.Field("cpu_seconds_total", u.cpu_seconds_total, "Of this process");
  f.Field("throttled_seconds_total", u.throttled_seconds_total, "Of this process");
  f.Field("memory_bytes", u.memory_bytes, "");
  f.Field("memory_peak_bytes", u.memory_peak_bytes, "");
  f.Field("memory_pressure_percent", u.memory_pressure_percent,
          "Of the newest 10 s, in which some thread waited for memory; null: not known");
  f.Field("cpu_pressure_percent", u.cpu_pressure_percent,
          "The same for processors; null: not known");
}

static const char* NameOf(const WorkerFigures&) {
  return "WorkerFigures";
}
template <typename F, Is<WorkerFigures> T>
static void Describe(F& f, T& w) {
  f.Field("records_committed", w.records_committed, "By shards whose done it reported");
  f.Field("records_per_second", w.records_per_second, "Over the newest seconds");
  f.Field("minibatches", w.minibatches, "Of this process");
  f.Field("shards_held", w.shards_held, "");
  f.Field("computing_seconds_total", w.computing_seconds_total, "Of this process");
  f.Field("waiting_shards_seconds_total", w.waiting_shards_seconds_total, "Of this process");
  f.Field("waiting_pulls_seconds_total", w.waiting_pulls_seconds_total, "Of this process");
  f.Field("waiting_pushes_seconds_total", w.waiting_pushes_seconds_total, "Of this process");
}

static const char* NameOf(const ServerFigures&) {
  return "ServerFigures";
}
template <typename F, Is<ServerFigures> T>
static void Describe(F& f, T& s) {
  f.Field("partitions", s.partitions, "That it owns");
  f.Field("partitions_serving", s.partitions_serving, "");
  f.Field("rows", s.rows, "Now");
  f.Field("row_bytes", s.row_bytes, "Now, of memory");
  f.Field("pulls", s.pulls, "Requests of this process");
  f.Field("pulled_rows", s.pulled_rows, "");
  f.Field("parts_applied", s.parts_applied, "");
  f.Field("parts_skipped", s.parts_skipped, "They were in already");
  f.Field("snapshots", s.snapshots, "Files written");
  f.Field("snapshot_bytes", s.snapshot_bytes, "Of those files");
  f.Field("serving_seconds_total", s.serving_seconds_total, "In which its threads served requests");
}

static const char* NameOf(const Node&) {
  return "Node";
}
template <typename F, Is<Node> T>
static void Describe(F& f, T& n) {
  f.Field("name", n.name, "worker-0, ps-1, master, ...");
  f.Choice("role", n.role, {"master", "ps", "worker", "scaler"}, "");
  f.Choice("state", n.state, {"starting", "running", "lost", "exited", "finished"},
           "exited: it may be started again; finished: it is not");
  f.Choice("drain", n.drain, {"none", "draining", "drained"}, "");
  f.Field("drain_left", n.drain_left, "Shards or partitions that its drain waits for");
  f.Field("pid", n.pid, "0: not known");
  f.Field("start", n.start, "1 for the first process of this node in this run, then 2, ...");
  f.Field("restarts", n.restarts, "");
  f.Field("last_exit", n.last_exit, "SIGKILL, exit 1, ...; empty: none");
  f.Field("heartbeat_age_ms", n.heartbeat_age_ms, "");
  f.Field("requested", n.requested, "By the job file");
  f.Field("limits", n.limits, "Now");
  f.Field("usage", n.usage, "null: not measured");
  f.Field("worker", n.worker, "null: it is none");
  f.Field("server", n.server, "null: it is none");
}

static const char* NameOf(const NodeList&) {
  return "NodeList";
}
template <typename F, Is<NodeList> T>
static void Describe(F& f, T& l) {
  f.Field("nodes", l.nodes, "");
}

static const char* NameOf(const LogChunk&) {
  return "LogChunk";
}
template <typename F, Is<LogChunk> T>
static void Describe(F& f, T& c) {
  f.Field("node", c.node, "");
  f.Field("offset", c.offset, "Of the first line, in bytes");
  f.Field("next_offset", c.next_offset, "Ask for this offset to follow the log");
  f.Field("skipped", c.skipped, "What was asked for is not kept any more; this is the oldest");
  f.Field("lines", c.lines, "");
}

static const char* NameOf(const Partition&) {
  return "Partition";
}
template <typename F, Is<Partition> T>
static void Describe(F& f, T& p) {
  f.Field("partition", p.partition, "");
  f.Field("owner", p.owner, "Empty: nobody");
  f.Field("epoch", p.epoch, "Of the ownership");
  f.Choice("state", p.state, {"serving", "restoring", "unowned"}, "");
  f.Field("rows", p.rows, "");
  f.Field("row_bytes", p.row_bytes, "");
  f.Field("pulls", p.pulls, "By the owner's process");
  f.Field("pushes", p.pushes, "By the owner's process");
  f.Field("bytes_moved", p.bytes_moved, "By the owner's process, both directions");
  f.Field("service_seconds_total", p.service_seconds_total, "By the owner's process");
  f.Field("snapshot_number", p.snapshot_number, "0: none");
  f.Field("snapshot_age_ms", p.snapshot_age_ms,
          "null: there is none yet, or the master is younger than it");
  f.Field("pulls_per_second", p.pulls_per_second, "Over the newest seconds; null: not known");
  f.Field("pushes_per_second", p.pushes_per_second, "");
  f.Field("bytes_per_second", p.bytes_per_second, "Both directions");
  f.Field("service_ratio", p.service_ratio, "Time that it is served, of a second");
}

static const char* NameOf(const PartitionPage&) {
  return "PartitionPage";
}
template <typename F, Is<PartitionPage> T>
static void Describe(F& f, T& p) {
  f.Field("total", p.total, "On all pages");
  f.Field("offset", p.offset, "Of the first one here");
  f.Field("partitions", p.partitions, "");
}

static const char* NameOf(const Evidence&) {
  return "Evidence";
}
template <typename F, Is<Evidence> T>
static void Describe(F& f, T& e) {
  f.Field("name", e.name, "");
  f.Field("value", e.value, "");
  f.Field("unit", e.unit, "");
  f.Field("window_s", e.window_s, "Seconds over which it was taken; 0: at one moment");
}

static const char* ActionsText() {
  static const auto* const kText = [] {
    auto* text = new std::string();
    for (const ActionAbout& action : AllActions()) *text += std::string(action.name) + ", ";
    text->replace(text->size() - 2, 2, "; empty: none");
    return text;
  }();
  return kText->c_str();
}

static const char* NameOf(const Event&) {
  return "Event";
}
template <typename F, Is<Event> T>
static void Describe(F& f, T& e) {
  f.Field("id", e.id, "From 1, without gaps");
  f.Field("wall_us", e.wall_us, "Microseconds since the Unix epoch");
  f.Choice("kind", e.kind, {"decision", "outcome", "exit", "action", "note"}, "");
  f.Field("policy", e.policy, "Whose decision; empty: none, or a person's");
  f.Field("target", e.target, "A node, a policy, or the job");
  f.Field("action", e.action, ActionsText());
  f.Field("before", e.before, "cpus, memory_bytes, workers, ...");
  f.Field("after", e.after, "The same names");
  f.Field("evidence", e.evidence, "");
  f.Field("because", e.because, "One sentence");
  f.Field("dry_run", e.dry_run, "Decided, and not done");
  f.Field("cause_id", e.cause_id, "The event that led to it; 0: none");
  f.Choice("verdict", e.verdict, {"", "helped", "no-change", "worse", "unknown"},
           "Of an outcome; else empty");
}

static const char* NameOf(const EventList&) {
  return "EventList";
}
template <typename F, Is<EventList> T>
static void Describe(F& f, T& l) {
  f.Field("events", l.events, "Oldest first");
  f.Field("next_after", l.next_after, "Go on with this as after");
}

static const char* NameOf(const Explanation&) {
  return "Explanation";
}
template <typename F, Is<Explanation> T>
static void Describe(F& f, T& e) {
  f.Field("event", e.event, "");
  f.Field("cause", e.cause, "What led to it");
  f.Field("effects", e.effects, "What came of it, its outcome among them");
}

static const char* NameOf(const SampleSeries&) {
  return "SampleSeries";
}
template <typename F, Is<SampleSeries> T>
static void Describe(F& f, T& s) {
  f.Field("node", s.node, "Empty: the job's");
  f.Field("name", s.name, "");
  f.Field("unit", s.unit, "");
  f.Field("values", s.values, "One per time; null: not known");
}

static const char* NameOf(const Samples&) {
  return "Samples";
}
template <typename F, Is<Samples> T>
static void Describe(F& f, T& s) {
  f.Field("times_us", s.times_us, "Microseconds since the Unix epoch, ascending");
  f.Field("series", s.series, "");
}

static const char* NameOf(const Policy&) {
  return "Policy";
}
template <typename F, Is<Policy> T>
static void Describe(F& f, T& p) {
  f.Field("name", p.name, "");
  f.Field("summary", p.summary, "What it watches and does");
  f.Field("paused", p.paused, "");
  f.Field("dry_run", p.dry_run, "It decides, and nothing is done");
  f.Field("decisions", p.decisions, "In this run");
  f.Field("refused", p.refused, "Proposals held back by cooldown, budget or a pause");
  f.Field("cooldown_s", p.cooldown_s, "");
  f.Field("options", p.options, "Its thresholds by name");
  f.Field("last_event_id", p.last_event_id, "Its newest decision; 0: none");
}

static const char* NameOf(const PolicyList&) {
  return "PolicyList";
}
template <typename F, Is<PolicyList> T>
static void Describe(F& f, T& l) {
  f.Field("policies", l.policies, "");
}

static const char* NameOf(const Status&) {
  return "Status";
}
template <typename F, Is<Status> T>
static void Describe(F& f, T& s) {
  f.Field("job", s.job, "");
  f.Field("nodes", s.nodes, "");
}

nlohmann::json ToJson(const Job& job) {
  return JsonFields::Value(job);
}
nlohmann::json ToJson(const DatasetList& list) {
  return JsonFields::Value(list);
}
nlohmann::json ToJson(const ShardPage& page) {
  return JsonFields::Value(page);
}
nlohmann::json ToJson(const ShardMap& map) {
  return JsonFields::Value(map);
}
nlohmann::json ToJson(const NodeList& list) {
  return JsonFields::Value(list);
}
nlohmann::json ToJson(const Node& node) {
  return JsonFields::Value(node);
}
nlohmann::json ToJson(const LogChunk& chunk) {
  return JsonFields::Value(chunk);
}
nlohmann::json ToJson(const PartitionPage& page) {
  return JsonFields::Value(page);
}
nlohmann::json ToJson(const EventList& list) {
  return JsonFields::Value(list);
}
nlohmann::json ToJson(const Event& event) {
  return JsonFields::Value(event);
}
nlohmann::json ToJson(const Explanation& explanation) {
  return JsonFields::Value(explanation);
}
nlohmann::json ToJson(const Samples& samples) {
  return JsonFields::Value(samples);
}
nlohmann::json ToJson(const PolicyList& list) {
  return JsonFields::Value(list);
}
nlohmann::json ToJson(const Status& status) {
  return JsonFields::Value(status);
}

template <typename T>
absl::StatusOr<T> FromJson(const nlohmann::json& json) {
  T value;
  MUSTER_RETURN_IF_ERROR(ReadFields::Read(json, NameOf(value), &value));
  return value;
}
template absl::StatusOr<Event> FromJson<Event>(const nlohmann::json& json);
template absl::StatusOr<EventList> FromJson<EventList>(const nlohmann::json& json);
template absl::StatusOr<Explanation> FromJson<Explanation>(const nlohmann::json& json);
template absl::StatusOr<Job> FromJson<Job>(const nlohmann::json& json);
template absl::StatusOr<Node> FromJson<Node>(const nlohmann::json& json);
template absl::StatusOr<NodeList> FromJson<NodeList>(const nlohmann::json& json);
template absl::StatusOr<PolicyList> FromJson<PolicyList>(const nlohmann::json& json);

nlohmann::json ModelSchemas() {
  nlohmann::json schemas = nlohmann::json::object();
  const auto add = [&schemas](const auto& value) { SchemaFields::Schema(value, &schemas); };
  add(Status{});
  add(DatasetList{});
  add(ShardPage{});
  add(ShardMap{});
  add(NodeList{});
  add(LogChunk{});
  add(PartitionPage{});
  add(EventList{});
  add(Explanation{});
  add(Samples{});
  add(PolicyList{});
  return schemas;
}

std::string Dump(const nlohmann::json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace muster::scaler::rest
