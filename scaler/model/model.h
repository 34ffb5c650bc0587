#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/words/limits.h"
#include "scaler/model/dataset_model.h"
#include "scaler/model/event_model.h"

/// What the REST interface shows, as plain values. The list of a struct's fields (proto/fields)
/// says what each means; json_fields.h writes documents and their schemas from it, so that they
/// cannot differ. Units are in the names; numbers that are not defined (NaN, infinity) become null.
/// Texts must be valid UTF-8 (base/text.h).
namespace muster::scaler::rest {

struct Resources {
  static constexpr const char* kName = "Resources";
  double cpus = 0;
  uint64_t memory_bytes = 0;
  static void Fields(auto& f, auto& r) {
    f(0, "cpus", r.cpus, {"Processors; 0: not limited"});
    f(0, "memory_bytes", r.memory_bytes, {"0: not limited"});
  }
};

/// Training datasets only, all epochs together.
struct Progress {
  static constexpr const char* kName = "Progress";
  uint64_t records_expected = 0;
  uint64_t records_done = 0;
  uint64_t records_committed = 0;
  double records_per_second = 0;
  std::optional<double> remaining_seconds;
  static void Fields(auto& f, auto& p) {
    f(0, "records_expected", p.records_expected, {"Of all training epochs"});
    f(0, "records_done", p.records_done, {"Committed ones included; goes back when a server dies"});
    f(0, "records_committed", p.records_committed, {"Never goes back"});
    f(0, "records_per_second", p.records_per_second, {"Over the newest seconds"});
    f(0, "remaining_seconds", p.remaining_seconds, {"null: not known yet"});
  }
};

struct Job {
  static constexpr const char* kName = "Job";
  std::string name;
  std::string id;
  std::string state = "running";
  std::string reason;
  uint64_t master_incarnation = 0;
  uint64_t uptime_ms = 0;
  /// Progress is shown as of then.
  uint64_t seen_wall_us = 0;
  bool master_reachable = false;
  Progress progress;
  /// redelivered_minibatches, replayed_shards, ...
  std::map<std::string, uint64_t> counters;
  uint64_t last_event_id = 0;
  uint64_t scaler_started_wall_us = 0;
  uint32_t workers_wanted = 0;
  /// The job file's range, if it has one.
  uint32_t workers_min = 1;
  uint32_t workers_max = kWorkersMax;
  std::string limits_remark;
  static void Fields(auto& f, auto& j) {
    f(0, "name", j.name);
    f(0, "id", j.id, {"Drawn at random when the job began"});
    f.Choice(0, "state", j.state,
             {"running", "draining", "drained", "succeeded", "failed", "cancelled", "stopped"});
    f(0, "reason", j.reason, {"The root cause of a job that failed; else empty"});
    f(0, "master_incarnation", j.master_incarnation);
    f(0, "uptime_ms", j.uptime_ms, {"Of this master process"});
    f(0, "seen_wall_us", j.seen_wall_us,
      {"When the master said so: microseconds since the Unix epoch; 0: it never answered"});
    f(0, "master_reachable", j.master_reachable,
      {"false: what is shown is the last that is known"});
    f(0, "progress", j.progress);
    f(0, "counters", j.counters, {"Running totals of the job by name"});
    f(0, "last_event_id", j.last_event_id, {"0: none"});
    f(0, "scaler_started_wall_us", j.scaler_started_wall_us);
    f(0, "workers_wanted", j.workers_wanted,
      {"How many workers there are to be; those that start, or are down, are among them"});
    f(0, "workers_min", j.workers_min, {"The least that `workers/scale` takes"});
    f(0, "workers_max", j.workers_max, {"The most that `workers/scale` takes"});
    f(0, "limits_remark", j.limits_remark,
      {"Empty: the kernel enforces limits; else what is missing, why, and what to do about it"});
  }
};

struct Usage {
  static constexpr const char* kName = "Usage";
  double cpus = 0;
  double throttled_ratio = 0;
  double cpu_seconds_total = 0;
  double throttled_seconds_total = 0;
  uint64_t memory_bytes = 0;
  uint64_t memory_peak_bytes = 0;
  std::optional<double> memory_pressure_percent;
  std::optional<double> cpu_pressure_percent;
  static void Fields(auto& f, auto& u) {
    f(0, "cpus", u.cpus, {"Processors in use, over the newest seconds"});
    f(0, "throttled_ratio", u.throttled_ratio, {"Of the time, held up by its CPU limit: 0 to 1"});
    f(0, "cpu_seconds_total", u.cpu_seconds_total, {"Of this process"});
    f(0, "throttled_seconds_total", u.throttled_seconds_total, {"Of this process"});
    f(0, "memory_bytes", u.memory_bytes);
    f(0, "memory_peak_bytes", u.memory_peak_bytes);
    f(0, "memory_pressure_percent", u.memory_pressure_percent,
      {"Of the newest 10 s, in which some thread waited for memory; null: not known"});
    f(0, "cpu_pressure_percent", u.cpu_pressure_percent,
      {"The same for processors; null: not known"});
  }
};
struct WorkerFigures {
  static constexpr const char* kName = "WorkerFigures";
  uint64_t records_committed = 0;
  double records_per_second = 0;
  uint64_t minibatches = 0;
  uint64_t shards_held = 0;
  double computing_seconds_total = 0;
  double waiting_shards_seconds_total = 0;
  double waiting_pulls_seconds_total = 0;
  double waiting_pushes_seconds_total = 0;
  static void Fields(auto& f, auto& w) {
    f(0, "records_committed", w.records_committed, {"By shards whose done it reported"});
    f(0, "records_per_second", w.records_per_second, {"Over the newest seconds"});
    f(0, "minibatches", w.minibatches, {"Of this process"});
    f(0, "shards_held", w.shards_held);
    f(0, "computing_seconds_total", w.computing_seconds_total, {"Of this process"});
    f(0, "waiting_shards_seconds_total", w.waiting_shards_seconds_total, {"Of this process"});
    f(0, "waiting_pulls_seconds_total", w.waiting_pulls_seconds_total, {"Of this process"});
    f(0, "waiting_pushes_seconds_total", w.waiting_pushes_seconds_total, {"Of this process"});
  }
};
struct ServerFigures {
  static constexpr const char* kName = "ServerFigures";
  uint64_t partitions = 0;
  uint64_t partitions_serving = 0;
  uint64_t rows = 0;
  uint64_t row_bytes = 0;
  uint64_t pulls = 0;
  uint64_t pulled_rows = 0;
  uint64_t parts_applied = 0;
  uint64_t parts_skipped = 0;
  uint64_t snapshots = 0;
  uint64_t snapshot_bytes = 0;
  double serving_seconds_total = 0;
  static void Fields(auto& f, auto& s) {
    f(0, "partitions", s.partitions, {"That it owns"});
    f(0, "partitions_serving", s.partitions_serving);
    f(0, "rows", s.rows, {"Now"});
    f(0, "row_bytes", s.row_bytes, {"Now, of memory"});
    f(0, "pulls", s.pulls, {"Requests of this process"});
    f(0, "pulled_rows", s.pulled_rows);
    f(0, "parts_applied", s.parts_applied);
    f(0, "parts_skipped", s.parts_skipped, {"They were in already"});
    f(0, "snapshots", s.snapshots, {"Files written"});
    f(0, "snapshot_bytes", s.snapshot_bytes, {"Of those files"});
    f(0, "serving_seconds_total", s.serving_seconds_total,
      {"In which its threads served requests"});
  }
};
struct Node {
  static constexpr const char* kName = "Node";
  std::string name;
  std::string role = "worker";
  std::string state = "starting";
  std::string drain = "none";
  uint64_t drain_left = 0;
  uint64_t pid = 0;
  uint64_t start = 0;
  uint64_t restarts = 0;
  std::string last_exit;
  uint64_t heartbeat_age_ms = 0;
  Resources requested;
  Resources limits;
  std::optional<Usage> usage;
  std::optional<WorkerFigures> worker;
  std::optional<ServerFigures> server;
  static void Fields(auto& f, auto& n) {
    f(0, "name", n.name, {"worker-0, ps-1, master, ..."});
    f.Choice(0, "role", n.role, {"master", "ps", "worker", "scaler"});
    f.Choice(0, "state", n.state, {"starting", "running", "lost", "exited", "finished"},
             {"exited: it may be started again; finished: it is not"});
    f.Choice(0, "drain", n.drain, {"none", "draining", "drained"});
    f(0, "drain_left", n.drain_left, {"Shards or partitions that its drain waits for"});
    f(0, "pid", n.pid, {"0: not known"});
    f(0, "start", n.start, {"1 for the first process of this node in this run, then 2, ..."});
    f(0, "restarts", n.restarts);
    f(0, "last_exit", n.last_exit, {"SIGKILL, exit 1, ...; empty: none"});
    f(0, "heartbeat_age_ms", n.heartbeat_age_ms);
    f(0, "requested", n.requested, {"By the job file"});
    f(0, "limits", n.limits, {"Now"});
    f(0, "usage", n.usage, {"null: not measured"});
    f(0, "worker", n.worker, {"null: it is none"});
    f(0, "server", n.server, {"null: it is none"});
  }
};
struct NodeList {
  static constexpr const char* kName = "NodeList";
  std::vector<Node> nodes;
  static void Fields(auto& f, auto& l) { f(0, "nodes", l.nodes); }
};

/// A piece of a node's log.
struct LogChunk {
  static constexpr const char* kName = "LogChunk";
  std::string node;
  uint64_t offset = 0;
  uint64_t next_offset = 0;
  bool skipped = false;
  std::vector<std::string> lines;
  static void Fields(auto& f, auto& c) {
    f(0, "node", c.node);
    f(0, "offset", c.offset, {"Of the first line, in bytes"});
    f(0, "next_offset", c.next_offset, {"Ask for this offset to follow the log"});
    f(0, "skipped", c.skipped, {"What was asked for is not kept any more; this is the oldest"});
    f(0, "lines", c.lines);
  }
};

struct Partition {
  static constexpr const char* kName = "Partition";
  uint32_t partition = 0;
  std::string owner;
  uint64_t epoch = 0;
  std::string state = "unowned";
  uint64_t rows = 0;
  uint64_t row_bytes = 0;
  uint64_t pulls = 0;
  uint64_t pushes = 0;
  uint64_t bytes_moved = 0;
  double service_seconds_total = 0;
  uint64_t snapshot_number = 0;
  std::optional<uint64_t> snapshot_age_ms;
  /// Absent: not known yet, or another process owns it now.
  std::optional<double> pulls_per_second;
  std::optional<double> pushes_per_second;
  std::optional<double> bytes_per_second;
  std::optional<double> service_ratio;
  static void Fields(auto& f, auto& p) {
    f(0, "partition", p.partition);
    f(0, "owner", p.owner, {"Empty: nobody"});
    f(0, "epoch", p.epoch, {"Of the ownership"});
    f.Choice(0, "state", p.state, {"serving", "restoring", "unowned"});
    f(0, "rows", p.rows);
    f(0, "row_bytes", p.row_bytes);
    f(0, "pulls", p.pulls, {"By the owner's process"});
    f(0, "pushes", p.pushes, {"By the owner's process"});
    f(0, "bytes_moved", p.bytes_moved, {"By the owner's process, both directions"});
    f(0, "service_seconds_total", p.service_seconds_total, {"By the owner's process"});
    f(0, "snapshot_number", p.snapshot_number, {"0: none"});
    f(0, "snapshot_age_ms", p.snapshot_age_ms,
      {"null: there is none yet, or the master is younger than it"});
    f(0, "pulls_per_second", p.pulls_per_second, {"Over the newest seconds; null: not known"});
    f(0, "pushes_per_second", p.pushes_per_second);
    f(0, "bytes_per_second", p.bytes_per_second, {"Both directions"});
    f(0, "service_ratio", p.service_ratio, {"Time that it is served, of a second"});
  }
};
struct PartitionPage {
  static constexpr const char* kName = "PartitionPage";
  uint64_t total = 0;
  uint64_t offset = 0;
  std::vector<Partition> partitions;
  static void Fields(auto& f, auto& p) {
    f(0, "total", p.total, {"On all pages"});
    f(0, "offset", p.offset, {"Of the first one here"});
    f(0, "partitions", p.partitions);
  }
};

/// What the stream's topic "status" carries.
struct Status {
  static constexpr const char* kName = "Status";
  Job job;
  std::vector<Node> nodes;
  static void Fields(auto& f, auto& s) {
    f(0, "job", s.job);
    f(0, "nodes", s.nodes);
  }
};

}  // namespace muster::scaler::rest
