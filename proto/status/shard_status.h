#pragma once

#include <cstdint>
#include <string>
#include <vector>

/// Shards as all readers see them. Part of the model of a job (job_status.h).
namespace muster {

struct ShardStatus {
  static constexpr const char* kName = "Shard";
  std::string id;
  std::string dataset;
  uint32_t epoch = 0;
  uint64_t index = 0;
  std::string state = "leased";
  std::string worker;
  uint64_t token = 0;
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
  static void Fields(auto& f, auto& s) {
    f(1, "id", s.id, {"dataset/epoch/index, numbers from 0"});
    f(2, "dataset", s.dataset, {"Its name"});
    f(3, "epoch", s.epoch);
    f(4, "index", s.index, {"Position in the order in which shards run"});
    f.Choice(5, "state", s.state, {"leased", "done", "failed"});
    f(6, "worker", s.worker, {"Of a lease"});
    f(7, "token", s.token, {"Of the newest grant; 0: not known"});
    f(8, "phase", s.phase, {"Of a lease: queued, computing, pushing"});
    f(9, "minibatches_started", s.minibatches_started);
    f(10, "failures", s.failures, {"Of the trainer"});
    f(11, "node_failures", s.node_failures,
      {"Preemptions and crashes of nodes, charged to no shard"});
    f(12, "reasons", s.reasons, {.says = "One per failure", .text_most = 1 << 16});
    f(13, "age_ms", s.age_ms, {"Of a lease"});
    f(14, "source", s.source,
      {.says = "The file, or topic[partition]; empty: record numbers", .most = 1 << 16});
    f(15, "first_record", s.first_record,
      {"From 0, without the header; of a topic the first offset"});
    f(16, "records", s.records, {"Of a topic: offsets, of which not every one is a record"});
    f(17, "first_line", s.first_line, {"From 1; 0: no file"});
  }
};
struct ShardPage {
  static constexpr const char* kName = "ShardPage";
  uint64_t total = 0;
  uint64_t offset = 0;
  std::vector<ShardStatus> shards;
  static void Fields(auto& f, auto& p) {
    f(1, "total", p.total, {"On all pages"});
    f(2, "offset", p.offset, {"Of the first one here"});
    f(3, "shards", p.shards, {"May be fewer than asked for: go on at offset plus their number"});
  }
};

/// Neighbouring shards in one state: indices [begin, end).
struct ShardRun {
  static constexpr const char* kName = "ShardRun";
  uint64_t begin = 0;
  uint64_t end = 0;
  std::string state = "todo";
  static void Fields(auto& f, auto& r) {
    f(1, "begin", r.begin, {"Index of the first shard"});
    f(2, "end", r.end, {"Index after the last one"});
    f.Choice(3, "state", r.state, {"todo", "leased", "done", "committed", "failed"});
  }
};
/// Shards of one epoch, in the order in which they run.
struct ShardMap {
  static constexpr const char* kName = "ShardMap";
  uint32_t dataset = 0;
  uint32_t epoch = 0;
  uint64_t shards = 0;
  std::vector<ShardRun> runs;
  static void Fields(auto& f, auto& m) {
    f(1, "dataset", m.dataset, {"Its position in the job file"});
    f(2, "epoch", m.epoch);
    f(3, "shards", m.shards, {"How many the epoch has"});
    f(4, "runs", m.runs, {"Neighbours in one state, ascending, without gaps"});
  }
};

}  // namespace muster
