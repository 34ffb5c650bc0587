#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

/// The part of model.h that is about datasets and their shards.
namespace muster::scaler::rest {

struct ShardCounts {
  static constexpr const char* kName = "ShardCounts";
  uint64_t total = 0;
  uint64_t todo = 0;
  uint64_t leased = 0;
  uint64_t done = 0;
  uint64_t committed = 0;
  uint64_t failed = 0;
  static void Fields(auto& f, auto& s) {
    f(0, "total", s.total);
    f(0, "todo", s.todo);
    f(0, "leased", s.leased);
    f(0, "done", s.done, {"Not yet committed"});
    f(0, "committed", s.committed);
    f(0, "failed", s.failed);
  }
};
struct Epoch {
  static constexpr const char* kName = "Epoch";
  uint32_t epoch = 0;
  uint64_t records_expected = 0;
  uint64_t records_done = 0;
  uint64_t records_committed = 0;
  uint64_t rejected_records = 0;
  std::vector<std::string> reject_samples;
  std::map<std::string, double> metrics;
  ShardCounts shards;
  static void Fields(auto& f, auto& e) {
    f(0, "epoch", e.epoch, {"From 0"});
    f(0, "records_expected", e.records_expected);
    f(0, "records_done", e.records_done, {"Committed ones included"});
    f(0, "records_committed", e.records_committed);
    f(0, "rejected_records", e.rejected_records);
    f(0, "reject_samples", e.reject_samples, {"Some of them: file:line: reason"});
    f(0, "metrics", e.metrics, {"Of what is committed; null: not defined"});
    f(0, "shards", e.shards);
  }
};
/// How far a dataset is in one partition of its topic. Offsets.
struct TopicPartition {
  static constexpr const char* kName = "TopicPartition";
  uint32_t partition = 0;
  uint64_t begin = 0;
  uint64_t cut = 0;
  uint64_t committed = 0;
  std::optional<uint64_t> end;
  std::optional<uint64_t> log_begin;   // absent: the topic was not seen yet
  std::optional<uint64_t> stable_end;  // likewise
  std::optional<uint64_t> lag;
  std::optional<double> lag_seconds;
  std::optional<uint64_t> held_back;
  uint64_t open_ranges = 0;
  uint64_t lost = 0;
  static void Fields(auto& f, auto& p) {
    f(0, "partition", p.partition, {"Of the topic"});
    f(0, "begin", p.begin, {"Where the dataset begins"});
    f(0, "cut", p.cut, {"Everything before it lies in a shard"});
    f(0, "committed", p.committed, {"Everything before it is committed"});
    f(0, "end", p.end, {"Where the dataset ends; absent: never, or not known yet"});
    f(0, "log_begin", p.log_begin, {"The oldest offset that is kept"});
    f(0, "stable_end", p.stable_end, {"The last stable offset"});
    f(0, "lag", p.lag,
      {"Offsets that can be read and are not committed; absent, as the next two: the topic was "
       "not seen yet"});
    f(0, "lag_seconds", p.lag_seconds, {"Since the first of them was first seen"});
    f(0, "held_back", p.held_back, {"Offsets that wait for open transactions"});
    f(0, "open_ranges", p.open_ranges, {"Shards that are not committed"});
    f(0, "lost", p.lost, {"Offsets that are gone from the log; their shards are failed"});
  }
};
/// From the timestamps of records until every server had applied their minibatch.
struct Delay {
  static constexpr const char* kName = "Delay";
  uint64_t records = 0;
  double p50_seconds = 0;
  double p99_seconds = 0;
  uint64_t total_records = 0;
  double total_p50_seconds = 0;
  double total_p99_seconds = 0;
  double total_seconds = 0;
  std::vector<uint64_t> buckets;
  static void Fields(auto& f, auto& d) {
    f(0, "records", d.records, {"Of about the last minute, as the next two"});
    f(0, "p50_seconds", d.p50_seconds, {"At most a quarter too large, as all quantiles here"});
    f(0, "p99_seconds", d.p99_seconds);
    f(0, "total_records", d.total_records, {"Since master and workers began, as all below"});
    f(0, "total_p50_seconds", d.total_p50_seconds);
    f(0, "total_p99_seconds", d.total_p99_seconds);
    f(0, "total_seconds", d.total_seconds, {"The sum"});
    f(0, "buckets", d.buckets, {"Records below 4 ms, 8 ms, 16 ms and so on"});
  }
};
struct Stream {
  static constexpr const char* kName = "Stream";
  std::string topic;
  bool open = false;
  std::string trouble;
  std::string dead_letter_trouble;
  std::optional<uint64_t> lag;
  std::optional<double> lag_seconds;
  std::optional<uint64_t> held_back;
  std::optional<Delay> delay;
  std::vector<TopicPartition> partitions;
  static void Fields(auto& f, auto& s) {
    f(0, "topic", s.topic);
    f(0, "open", s.open, {"More shards will come"});
    f(0, "trouble", s.trouble, {"Why it cannot be looked at now; empty: it can"});
    f(0, "dead_letter_trouble", s.dead_letter_trouble,
      {"Why rejected records cannot be written to their topic; empty: nothing is known"});
    f(0, "lag", s.lag,
      {"Of all partitions, in offsets; absent, as the next two: not known, for one of them at "
       "least"});
    f(0, "lag_seconds", s.lag_seconds, {"Of the partition where it is largest"});
    f(0, "held_back", s.held_back, {"Of all partitions, in offsets"});
    f(0, "delay", s.delay,
      {"From a record's timestamp until the servers had applied it; absent: nothing yet"});
    f(0, "partitions", s.partitions);
  }
};
struct Dataset {
  static constexpr const char* kName = "Dataset";
  uint32_t index = 0;
  std::string name;
  std::string mode = "train";
  uint32_t epochs_total = 0;
  std::vector<Epoch> epochs;
  std::optional<Stream> stream;
  static void Fields(auto& f, auto& d) {
    f(0, "index", d.index, {"Position in the job file, from 0"});
    f(0, "name", d.name);
    f.Choice(0, "mode", d.mode, {"train", "evaluate"});
    f(0, "epochs_total", d.epochs_total);
    f(0, "epochs", d.epochs, {"At most 1,000: those around the newest"});
    f(0, "stream", d.stream, {"The dataset is a topic; absent: files"});
  }
};
struct DatasetList {
  static constexpr const char* kName = "DatasetList";
  std::vector<Dataset> datasets;
  static void Fields(auto& f, auto& l) { f(0, "datasets", l.datasets); }
};

struct Shard {
  static constexpr const char* kName = "Shard";
  std::string id;
  std::string dataset;
  uint32_t epoch = 0;
  uint64_t index = 0;
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
  static void Fields(auto& f, auto& s) {
    f(0, "id", s.id, {"dataset/epoch/index, numbers from 0"});
    f(0, "dataset", s.dataset, {"Its name"});
    f(0, "epoch", s.epoch);
    f(0, "index", s.index, {"Position in the order in which shards run"});
    f.Choice(0, "state", s.state, {"leased", "done", "failed"});
    f(0, "worker", s.worker, {"Of a lease"});
    f(0, "phase", s.phase, {"Of a lease"});
    f(0, "minibatches_started", s.minibatches_started);
    f(0, "failures", s.failures, {"Of the trainer"});
    f(0, "node_failures", s.node_failures, {"Of nodes, charged to nobody"});
    f(0, "reasons", s.reasons, {"One per failure"});
    f(0, "age_ms", s.age_ms, {"In this state"});
    f(0, "source", s.source, {"The file, or topic[partition]"});
    f(0, "first_record", s.first_record,
      {"From 0, without the header; of a topic the first offset"});
    f(0, "records", s.records, {"Of a topic: offsets"});
    f(0, "first_line", s.first_line, {"From 1; 0: a topic"});
  }
};
struct ShardPage {
  static constexpr const char* kName = "ShardPage";
  uint64_t total = 0;
  uint64_t offset = 0;
  std::vector<Shard> shards;
  static void Fields(auto& f, auto& p) {
    f(0, "total", p.total, {"On all pages"});
    f(0, "offset", p.offset, {"Of the first one here"});
    f(0, "shards", p.shards, {"May be fewer than asked for: go on at offset plus their number"});
  }
};

/// Neighbouring shards in one state: indices [begin, end).
struct ShardRun {
  static constexpr const char* kName = "ShardRun";
  uint64_t begin = 0;
  uint64_t end = 0;
  std::string state = "todo";
  static void Fields(auto& f, auto& r) {
    f(0, "begin", r.begin, {"Index of the first shard"});
    f(0, "end", r.end, {"Index after the last one"});
    f.Choice(0, "state", r.state, {"todo", "leased", "done", "committed", "failed"});
  }
};
/// All shards of one epoch, in the order in which they run.
struct ShardMap {
  static constexpr const char* kName = "ShardMap";
  uint32_t dataset = 0;
  uint32_t epoch = 0;
  uint64_t shards = 0;
  std::vector<ShardRun> runs;
  static void Fields(auto& f, auto& m) {
    f(0, "dataset", m.dataset);
    f(0, "epoch", m.epoch);
    f(0, "shards", m.shards, {"How many the epoch has"});
    f(0, "runs", m.runs, {"Neighbours in one state, ascending, without gaps"});
  }
};

}  // namespace muster::scaler::rest
