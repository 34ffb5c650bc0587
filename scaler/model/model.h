#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/words/limits.h"
#include "host/resources.h"
#include "proto/status/job_status.h"
#include "proto/status/partition_status.h"
#include "proto/status/shard_status.h"
#include "scaler/model/event_model.h"

/// What the REST interface shows, as plain values: what the master reports (proto/status), and what
/// only the scaler knows. The list of a struct's fields (proto/fields) says what each field means.
/// Documents and their schemas are both written from that list, so they cannot differ. Names
/// contain the units. Numbers that are not defined (NaN, infinity) become null. Texts must be valid
/// UTF-8 (base/text.h).
namespace muster::scaler::rest {

struct Job : JobSummary {
  static constexpr const char* kName = "Job";
  std::string id;
  /// The time that the shown progress is from.
  uint64_t seen_wall_us = 0;
  bool master_reachable = false;
  uint64_t last_event_id = 0;
  uint64_t scaler_started_wall_us = 0;
  uint32_t workers_wanted = 0;
  /// The job file's range, if it has one.
  uint32_t workers_min = 1;
  uint32_t workers_max = kWorkersMax;
  std::string limits_remark;
  double snapshot_interval_s = 0;
  static void Fields(auto& f, auto& j) {
    JobSummary::Fields(f, j);  // they are members of the same document
    JobSummary::LaterFields(f, j);
    f(0, "id", j.id, {"Drawn at random when the job began"});
    f(0, "seen_wall_us", j.seen_wall_us,
      {"When the master said so: microseconds since the Unix epoch; 0: it never answered"});
    f(0, "master_reachable", j.master_reachable,
      {"false: what is shown is the last that is known"});
    f(0, "last_event_id", j.last_event_id, {"Of the scaler's events; 0: none"});
    f(0, "scaler_started_wall_us", j.scaler_started_wall_us);
    f(0, "workers_wanted", j.workers_wanted,
      {"How many workers there are to be; those that start, or are down, are among them"});
    f(0, "workers_min", j.workers_min, {"The least that `workers/scale` takes"});
    f(0, "workers_max", j.workers_max, {"The most that `workers/scale` takes"});
    f(0, "limits_remark", j.limits_remark,
      {"Empty: the kernel enforces limits; else what is missing, why, and what to do about it"});
    f(0, "snapshot_interval_s", j.snapshot_interval_s,
      {"How often snapshots are taken. A record is committed when every partition has a snapshot "
       "that holds it"});
  }
};

struct Usage : NodeUsage {
  static constexpr const char* kName = "Usage";
  double cpus = 0;
  double throttled_ratio = 0;
  static void Fields(auto& f, auto& u) {
    NodeUsage::Fields(f, u);  // they are members of the same document
    f(0, "cpus", u.cpus, {.says = "Processors in use, over the newest seconds", .gauge = true});
    f(0, "throttled_ratio", u.throttled_ratio,
      {.says = "Of the time, held up by its CPU limit: 0 to 1", .gauge = true});
  }
};

struct Node : NodeStatus {
  static constexpr const char* kName = "Node";
  Resources requested;
  Resources limits;
  std::optional<Usage> usage;
  std::optional<double> records_per_second;
  static void Fields(auto& f, auto& n) {
    NodeStatus::Fields(f, n);  // they are members of the same document
    f(0, "requested", n.requested, {"By the job file"});
    f(0, "limits", n.limits, {"Now"});
    f(0, "usage", n.usage, {"null: not measured"});
    f(0, "records_per_second", n.records_per_second,
      {"Trained by a worker, over the newest seconds; null: it is none, or has no process that "
       "was heard"});
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

struct Partition : PartitionStatus {
  static constexpr const char* kName = "Partition";
  /// Absent if it is not known yet, or if another process owns the partition now.
  std::optional<double> pulls_per_second;
  std::optional<double> pushes_per_second;
  std::optional<double> bytes_per_second;
  std::optional<double> service_ratio;
  static void Fields(auto& f, auto& p) {
    PartitionStatus::Fields(f, p);  // they are members of the same document
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

/// The documents of the stream's topic "status".
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
