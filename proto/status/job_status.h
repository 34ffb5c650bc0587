#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "proto/status/dataset_status.h"
#include "proto/status/group_status.h"
#include "proto/status/job_state.h"
#include "proto/status/metric_trend.h"
#include "proto/status/node_status.h"

/// The model of a job: what it is, defined once. The master fills it (master/service), the wire
/// carries it (proto/admin.proto), and `--output json`, the REST interface, its metrics and its
/// page show it, all by the lists here. Units are in the names.
namespace muster {

/// Training datasets only, all epochs together.
struct Progress {
  static constexpr const char* kName = "Progress";
  uint64_t records_expected = 0;
  uint64_t records_done = 0;
  uint64_t records_committed = 0;
  std::optional<double> records_per_second;
  std::optional<double> remaining_seconds;
  static void Fields(auto& f, auto& p) {
    f(1, "records_expected", p.records_expected, {"Of all training epochs"});
    f(2, "records_done", p.records_done, {"Committed ones included; goes back when a server dies"});
    f(3, "records_committed", p.records_committed, {"Never goes back"});
    f(0, "records_per_second", p.records_per_second,
      {"Over the newest seconds; null: not measured"});
    f(0, "remaining_seconds", p.remaining_seconds, {"null: not known"});
  }
};

/// Running totals of the job.
struct JobCounters {
  static constexpr const char* kName = "JobCounters";
  uint64_t redelivered_minibatches = 0;
  uint64_t replayed_shards = 0;
  uint64_t reverified_runs = 0;
  uint64_t reasserted_leases = 0;
  uint64_t expired_leases = 0;
  uint64_t parts_skipped = 0;
  uint64_t refused_dones = 0;
  uint64_t rejected_records = 0;
  uint64_t snapshots_accepted = 0;
  uint64_t master_restarts = 0;
  uint64_t parts_stale = 0;
  static void Fields(auto& f, auto& c) {
    f(1, "redelivered_minibatches", c.redelivered_minibatches);
    f(2, "replayed_shards", c.replayed_shards);
    f(3, "reverified_runs", c.reverified_runs);
    f(4, "reasserted_leases", c.reasserted_leases);
    f(5, "expired_leases", c.expired_leases);
    f(6, "parts_skipped", c.parts_skipped, {"By all server processes of this job"});
    f(7, "refused_dones", c.refused_dones);
    f(8, "rejected_records", c.rejected_records);
    f(9, "snapshots_accepted", c.snapshots_accepted);
    f(10, "master_restarts", c.master_restarts);
    f(11, "parts_stale", c.parts_stale);
  }
};

/// An epoch whose weights are kept, for export.
struct KeptEpoch {
  static constexpr const char* kName = "KeptEpoch";
  uint32_t epoch = 0;
  bool best = false;
  std::optional<double> value;
  static void Fields(auto& f, auto& k) {
    f(1, "epoch", k.epoch, {"From 0"});
    f(2, "best", k.best, {"It had the best value of the metric of spec.training.keep.best so far"});
    f(3, "value", k.value, {"Of that metric; null: not defined"});
  }
};
/// The best one, and those of spec.training.keep.every.
inline constexpr size_t kKeptEpochsMax = 200;

/// The job without its datasets and nodes.
struct JobSummary {
  static constexpr const char* kName = "JobSummary";
  std::string name;
  JobState state = JobState::kUnknown;
  std::string reason;
  bool unrestorable = false;
  uint64_t master_incarnation = 0;
  uint64_t uptime_ms = 0;
  bool grace_period = false;
  uint64_t done_seq = 0;
  uint64_t commit_seq = 0;
  Progress progress;
  JobCounters counters;
  uint64_t events_newest = 0;
  std::string last_event;
  std::vector<MetricTrend> metric_trends;
  uint64_t running_ms = 0;
  std::vector<KeptEpoch> kept_epochs;
  std::optional<GroupStatus> group;
  std::vector<std::string> end_unheard_by;
  static void Fields(auto& f, auto& j) {
    f(1, "name", j.name);
    f(2, "state", j.state, {.most = 7});
    f(3, "reason", j.reason,
      {.says = "The root cause of a job that failed; of one that runs: why it gets nowhere now; "
               "empty: nothing is known",
       .most = 1 << 16});
    f(4, "unrestorable", j.unrestorable,
      {"It failed because a server could not read its snapshots; a master that was started again "
       "since then does not say it"});
    f(5, "master_incarnation", j.master_incarnation);
    f(6, "uptime_ms", j.uptime_ms, {"Of this master process"});
    f(7, "grace_period", j.grace_period, {"The master was started again and collects leases"});
    f(8, "done_seq", j.done_seq, {"Grows with every shard that is done"});
    f(9, "commit_seq", j.commit_seq, {"Done shards up to this number are committed"});
    f(10, "progress", j.progress);
    f(11, "counters", j.counters, {"Running totals of the job"});
    f(12, "events_newest", j.events_newest, {"Number of the master's newest event; 0: none"});
    f(13, "last_event", j.last_event, {.says = "The master's newest event", .most = 1 << 16});
  }
  /// Fields that were added after those of JobStatus, because numbers must ascend.
  static void LaterFields(auto& f, auto& j) {
    f(16, "metric_trends", j.metric_trends,
      {.says = "Of each metric of each dataset: the newest value, the one before, the best",
       .most = kMetricTrendsMax});
    f(17, "running_ms", j.running_ms,
      {"For how long the job has run, all its runs and masters together, without the time between "
       "runs"});
    f(18, "kept_epochs", j.kept_epochs,
      {.says = "Whose weights `muster export --epoch` can write", .most = kKeptEpochsMax});
    f(19, "group", j.group, {"The workers train synchronously; null: they do not"});
    f(20, "end_unheard_by", j.end_unheard_by,
      {"When the job is over: nodes of other machines whose `muster join` does not know it yet"});
  }
};

struct JobStatus : JobSummary {
  static constexpr const char* kName = "JobStatus";
  std::vector<DatasetStatus> datasets;
  std::vector<NodeStatus> nodes;
  static void Fields(auto& f, auto& j) {
    JobSummary::Fields(f, j);  // in the same message
    f(14, "datasets", j.datasets);
    f(15, "nodes", j.nodes);
    JobSummary::LaterFields(f, j);
  }
};

/// An event of the master.
struct MasterEvent {
  static constexpr const char* kName = "MasterEvent";
  uint64_t sequence = 0;
  uint64_t wall_us = 0;
  std::string kind;
  std::string node;
  std::string text;
  static void Fields(auto& f, auto& e) {
    f(1, "sequence", e.sequence, {"From 1, without gaps"});
    f(2, "wall_us", e.wall_us, {"Microseconds since the Unix epoch, for people"});
    f(3, "kind", e.kind, {"node-exited, shard-failed, ..."});
    f(4, "node", e.node, {"Empty: the job's"});
    f(5, "text", e.text, {.says = "What happened", .most = 1 << 16});
  }
};
struct MasterEvents {
  static constexpr const char* kName = "MasterEvents";
  std::vector<MasterEvent> events;
  static void Fields(auto& f, auto& l) { f(1, "events", l.events); }
};

}  // namespace muster
