#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "scaler/rest/dataset_model.h"
#include "sharding/limits.h"

/// What the REST interface shows, as plain values. model_json.h writes them, and their schemas,
/// from one description, so that documents and /openapi.json cannot differ. Units are in the names;
/// numbers that are not defined (NaN, infinity) become null. Texts must be valid UTF-8
/// (base/text.h).
namespace muster::scaler::rest {

/// 0: not limited.
struct Resources {
  double cpus = 0;
  uint64_t memory_bytes = 0;
};

/// Training datasets only, all epochs together.
struct Progress {
  uint64_t records_expected = 0;
  uint64_t records_done = 0;
  uint64_t records_committed = 0;
  double records_per_second = 0;
  std::optional<double> remaining_seconds;  // absent: not known yet
};

struct Job {
  std::string name;
  std::string id;
  /// running, draining, drained, succeeded, failed, cancelled, stopped.
  std::string state = "running";
  /// The root cause of a job that failed.
  std::string reason;
  uint64_t master_incarnation = 0;
  uint64_t uptime_ms = 0;
  /// Progress is shown as of then; 0: the master has never answered.
  uint64_t seen_wall_us = 0;
  bool master_reachable = false;
  Progress progress;
  /// Running totals of the job by name: redelivered_minibatches, replayed_shards, ...
  std::map<std::string, uint64_t> counters;
  /// Of the newest event; 0: none.
  uint64_t last_event_id = 0;
  uint64_t scaler_started_wall_us = 0;
  /// How many there are to be.
  uint32_t workers_wanted = 0;
  /// How many may be wanted: the job file's range, if it has one.
  uint32_t workers_min = 1;
  uint32_t workers_max = kWorkersMax;
  /// "": the kernel enforces limits; else what is missing, why, and what to do about it.
  std::string limits_remark;
};

struct Shard {
  /// "dataset/epoch/index", numbers from 0.
  std::string id;
  std::string dataset;
  uint32_t epoch = 0;
  uint64_t index = 0;
  /// leased, done, failed.
  std::string state = "leased";
  std::string worker;
  std::string phase;
  uint32_t minibatches_started = 0;
  uint32_t failures = 0;
  uint32_t node_failures = 0;
  std::vector<std::string> reasons;
  uint64_t age_ms = 0;
  std::string source;
  uint64_t first_record = 0;
  uint64_t records = 0;
  uint64_t first_line = 0;
};
struct ShardPage {
  uint64_t total = 0;
  uint64_t offset = 0;
  std::vector<Shard> shards;
};

/// Neighbouring shards in one state: indices [begin, end).
struct ShardRun {
  uint64_t begin = 0;
  uint64_t end = 0;
  /// todo, leased, done, committed, failed.
  std::string state = "todo";
};
/// All shards of one epoch, in the order in which they run.
struct ShardMap {
  uint32_t dataset = 0;
  uint32_t epoch = 0;
  uint64_t shards = 0;
  std::vector<ShardRun> runs;
};

struct Usage {
  double cpus = 0;  // in use, over the newest seconds
  /// Share of the time in which its CPU quota held it up, 0 to 1.
  double throttled_ratio = 0;
  double cpu_seconds_total = 0;
  double throttled_seconds_total = 0;
  uint64_t memory_bytes = 0;
  uint64_t memory_peak_bytes = 0;
  /// Share of the newest 10 s in which some thread waited for it; absent: the kernel does not say.
  std::optional<double> memory_pressure_percent;
  std::optional<double> cpu_pressure_percent;
};
struct WorkerFigures {
  uint64_t records_committed = 0;
  double records_per_second = 0;
  uint64_t minibatches = 0;
  uint64_t shards_held = 0;
  /// Where the time of this process went so far.
  double computing_seconds_total = 0;
  double waiting_shards_seconds_total = 0;
  double waiting_pulls_seconds_total = 0;
  double waiting_pushes_seconds_total = 0;
};
struct ServerFigures {
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
};
struct Node {
  std::string name;
  /// master, ps, worker, scaler.
  std::string role = "worker";
  /// starting, running, lost, exited, finished.
  std::string state = "starting";
  /// none, draining, drained.
  std::string drain = "none";
  /// Shards or partitions that its drain waits for.
  uint64_t drain_left = 0;
  uint64_t pid = 0;
  /// 1 for the first process of this node in this run.
  uint64_t start = 0;
  uint64_t restarts = 0;
  std::string last_exit;
  uint64_t heartbeat_age_ms = 0;
  Resources requested;
  Resources limits;
  std::optional<Usage> usage;
  std::optional<WorkerFigures> worker;
  std::optional<ServerFigures> server;
};
struct NodeList {
  std::vector<Node> nodes;
};

/// A piece of a node's log.
struct LogChunk {
  std::string node;
  /// Bytes of the node's output before the first line, and where to go on.
  uint64_t offset = 0;
  uint64_t next_offset = 0;
  /// The offset that was asked for is not there any more: lines before this piece are missing.
  bool skipped = false;
  std::vector<std::string> lines;
};

struct Partition {
  uint32_t partition = 0;
  /// "" while nobody has it.
  std::string owner;
  uint64_t epoch = 0;
  /// serving, restoring, unowned.
  std::string state = "unowned";
  uint64_t rows = 0;
  uint64_t row_bytes = 0;
  uint64_t pulls = 0;
  uint64_t pushes = 0;
  uint64_t bytes_moved = 0;
  double service_seconds_total = 0;
  uint64_t snapshot_number = 0;
  /// Absent: there is none, or the master is younger than it.
  std::optional<uint64_t> snapshot_age_ms;
  /// Over the newest seconds; absent: not known yet, or another process owns it now.
  std::optional<double> pulls_per_second;
  std::optional<double> pushes_per_second;
  std::optional<double> bytes_per_second;
  std::optional<double> service_ratio;
};
struct PartitionPage {
  uint64_t total = 0;
  uint64_t offset = 0;
  std::vector<Partition> partitions;
};

/// A figure that a decision rests on.
struct Evidence {
  std::string name;
  double value = 0;
  std::string unit;
  /// It was taken over; 0: at one moment.
  double window_s = 0;
};
/// What happened and why. docs/rest.md has the meaning of each field.
struct Event {
  /// From 1, without gaps.
  uint64_t id = 0;
  uint64_t wall_us = 0;
  /// decision, outcome, exit, action, note.
  std::string kind = "note";
  std::string policy;
  std::string target;
  std::string action;
  std::map<std::string, double> before;
  std::map<std::string, double> after;
  std::vector<Evidence> evidence;
  std::string because;
  bool dry_run = false;
  /// The event that led to this one; 0: none.
  uint64_t cause_id = 0;
  /// Of an outcome: helped, no-change, worse, unknown; "" of others.
  std::string verdict;
};
struct EventList {
  std::vector<Event> events;
  /// What to ask for next, as `after`.
  uint64_t next_after = 0;
};
/// One event with what led to it and what came of it.
struct Explanation {
  Event event;
  std::optional<Event> cause;
  std::vector<Event> effects;
};

/// Columns of equal length: value i was taken at times_us[i].
struct SampleSeries {
  std::string node;
  std::string name;
  std::string unit;
  std::vector<double> values;
};
struct Samples {
  std::vector<uint64_t> times_us;
  std::vector<SampleSeries> series;
};

struct Policy {
  std::string name;
  std::string summary;
  bool paused = false;
  bool dry_run = false;
  uint64_t decisions = 0;
  /// Proposals held back by cooldown, budget or a pause.
  uint64_t refused = 0;
  double cooldown_s = 0;
  std::map<std::string, double> options;
  uint64_t last_event_id = 0;
};
struct PolicyList {
  std::vector<Policy> policies;
};

/// What the stream's topic "status" carries.
struct Status {
  Job job;
  std::vector<Node> nodes;
};

}  // namespace muster::scaler::rest
