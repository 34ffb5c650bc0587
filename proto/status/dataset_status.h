#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/words/dataset_modes.h"

/// Datasets as all readers see them: their epochs, and the progress of topics. Part of the model of
/// a job (job_status.h).
namespace muster {

struct ShardCounts {
  static constexpr const char* kName = "ShardCounts";
  uint64_t total = 0;
  uint64_t todo = 0;
  uint64_t leased = 0;
  uint64_t done = 0;
  uint64_t committed = 0;
  uint64_t failed = 0;
  static void Fields(auto& f, auto& s) {
    f(1, "total", s.total);
    f(2, "todo", s.todo);
    f(3, "leased", s.leased);
    f(4, "done", s.done, {"Not yet committed"});
    f(5, "committed", s.committed);
    f(6, "failed", s.failed);
  }
};

struct EpochStatus {
  static constexpr const char* kName = "Epoch";
  uint32_t epoch = 0;
  uint64_t records_expected = 0;
  uint64_t records_done = 0;
  uint64_t records_committed = 0;
  uint64_t rejected_records = 0;
  std::vector<std::string> reject_samples;
  std::map<std::string, double> metrics;
  uint64_t minibatches_again = 0;
  uint64_t records_later = 0;
  ShardCounts shards;
  static void Fields(auto& f, auto& e) {
    f(1, "epoch", e.epoch, {"From 0"});
    f(2, "records_expected", e.records_expected,
      {"Of a topic: up to its end, at most; if that is not known, those known so far"});
    f(3, "records_done", e.records_done, {"Committed ones included; goes back when a server dies"});
    f(4, "records_committed", e.records_committed, {"Never goes back"});
    f(5, "rejected_records", e.rejected_records);
    f(6, "reject_samples", e.reject_samples,
      {.says = "Some of them: file:line: reason", .text_most = 1 << 16});
    f(7, "metrics", e.metrics, {"Of what is committed, merged exactly once; null: not defined"});
    f(8, "shards", e.shards);
    f(9, "minibatches_again", e.minibatches_again,
      {"Whose metrics are of weights that had seen them, because a process died. If there are any, "
       "the metrics of the epoch are too good, and never the best"});
    f(10, "records_later", e.records_later,
      {"Of an evaluation: training records of later epochs that the weights may have seen when the "
       "epoch was judged, at most. If there are any, although evaluations do not overlap, the pass "
       "ran again after a process died, and is never the best"});
  }
};

/// The progress of a dataset in one partition of its topic. Offsets.
struct TopicPartitionStatus {
  static constexpr const char* kName = "TopicPartition";
  uint32_t partition = 0;
  uint64_t begin = 0;
  uint64_t cut = 0;
  uint64_t committed = 0;
  std::optional<uint64_t> end;
  std::optional<uint64_t> log_begin;
  std::optional<uint64_t> stable_end;
  std::optional<uint64_t> lag;
  std::optional<uint64_t> lag_ms;
  std::optional<uint64_t> held_back;
  uint64_t open_ranges = 0;
  uint64_t lost = 0;
  static void Fields(auto& f, auto& p) {
    f(1, "partition", p.partition, {"Of the topic"});
    f(2, "begin", p.begin, {"Where the dataset begins"});
    f(3, "cut", p.cut, {"Everything before it lies in a shard"});
    f(4, "committed", p.committed, {"Everything before it is committed"});
    f(5, "end", p.end, {"Where the dataset ends; null: never, or not known yet"});
    f(6, "log_begin", p.log_begin,
      {"The oldest offset that is kept; null, as the next four: the topic was not seen yet"});
    f(7, "stable_end", p.stable_end, {"The last stable offset"});
    f(8, "lag", p.lag, {"Offsets that can be read and are not committed"});
    f(9, "lag_ms", p.lag_ms, {"Since the first of them was first seen"});
    f(10, "held_back", p.held_back, {"Offsets that wait for open transactions"});
    f(11, "open_ranges", p.open_ranges, {"Shards that are not committed"});
    f(12, "lost", p.lost, {"Offsets that are gone from the log; their shards are failed"});
  }
};

/// From the timestamps of a topic's records until every server had applied their minibatch.
struct DelayStatus {
  static constexpr const char* kName = "Delay";
  uint64_t records = 0;
  uint64_t p50_ms = 0;
  uint64_t p99_ms = 0;
  uint64_t total_records = 0;
  uint64_t total_p50_ms = 0;
  uint64_t total_p99_ms = 0;
  uint64_t total_ms = 0;
  std::vector<uint64_t> buckets;
  static void Fields(auto& f, auto& d) {
    f(1, "records", d.records, {"Of the last half minute to minute, as the next two"});
    f(2, "p50_ms", d.p50_ms, {"At most a quarter too large, as all quantiles here"});
    f(3, "p99_ms", d.p99_ms);
    f(4, "total_records", d.total_records, {"Since master and workers began, as all below"});
    f(5, "total_p50_ms", d.total_p50_ms);
    f(6, "total_p99_ms", d.total_p99_ms);
    f(7, "total_ms", d.total_ms, {"The sum"});
    f(8, "buckets", d.buckets, {"Records below 4 ms, 8 ms, 16 ms and so on to 2^20 ms"});
  }
};

struct StreamStatus {
  static constexpr const char* kName = "Stream";
  std::string topic;
  std::string cluster;
  bool open = false;
  std::string trouble;
  std::string dead_letter_trouble;
  std::optional<uint64_t> lag;
  std::optional<uint64_t> lag_ms;
  std::optional<uint64_t> held_back;
  std::optional<DelayStatus> delay;
  std::vector<TopicPartitionStatus> partitions;
  static void Fields(auto& f, auto& s) {
    f(1, "topic", s.topic);
    f(2, "cluster", s.cluster, {"Its id; empty: not known"});
    f(3, "open", s.open, {"More shards will come"});
    f(4, "trouble", s.trouble,
      {.says = "Why it cannot be looked at now; empty: it can", .most = 1 << 16});
    f(5, "dead_letter_trouble", s.dead_letter_trouble,
      {.says = "Why rejected records cannot be written to their topic; empty: nothing is known",
       .most = 1 << 16});
    f(6, "lag", s.lag,
      {"Of all partitions, in offsets; null, as the next two: not known, for one of them at "
       "least"});
    f(7, "lag_ms", s.lag_ms, {"Of the partition where it is largest"});
    f(8, "held_back", s.held_back, {"Of all partitions, in offsets"});
    f(9, "delay", s.delay,
      {"From a record's timestamp until the servers had applied it; null: nothing yet"});
    f(10, "partitions", s.partitions);
  }
};

struct DatasetStatus {
  static constexpr const char* kName = "Dataset";
  uint32_t index = 0;
  std::string name;
  std::string mode = ToString(DatasetMode::kTrain);
  uint32_t epochs_total = 0;
  std::vector<EpochStatus> epochs;
  uint64_t omitted_records_expected = 0;
  uint64_t omitted_records_done = 0;
  uint64_t omitted_records_committed = 0;
  std::optional<StreamStatus> stream;
  bool overlaps = false;
  static void Fields(auto& f, auto& d) {
    f(1, "index", d.index, {"Position in the job file, from 0"});
    f(2, "name", d.name);
    f.Choice(3, "mode", d.mode, kDatasetModes);
    f(4, "epochs_total", d.epochs_total);
    f(5, "epochs", d.epochs,
      {"All, or 1,000 up to the epoch after the newest that has begun: the newest 500 at least, "
       "and "
       "of older ones every 2nd, 4th, 8th and so on, those with kept weights and the best ones"});
    f(6, "omitted_records_expected", d.omitted_records_expected, {"Of epochs not listed"});
    f(7, "omitted_records_done", d.omitted_records_done, {"Of epochs not listed"});
    f(8, "omitted_records_committed", d.omitted_records_committed, {"Of epochs not listed"});
    f(9, "stream", d.stream, {"The dataset is a topic; null: files"});
    f(10, "overlaps", d.overlaps,
      {"An evaluation that does not wait for its epoch (training.evaluation: overlap)"});
  }
};

struct DatasetList {
  static constexpr const char* kName = "DatasetList";
  std::vector<DatasetStatus> datasets;
  static void Fields(auto& f, auto& l) { f(1, "datasets", l.datasets); }
};

}  // namespace muster
