#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

/// The part of model.h that is about datasets.
namespace muster::scaler::rest {

struct ShardCounts {
  uint64_t total = 0;
  uint64_t todo = 0;
  uint64_t leased = 0;
  uint64_t done = 0;  // not yet committed
  uint64_t committed = 0;
  uint64_t failed = 0;
};
struct Epoch {
  uint32_t epoch = 0;
  uint64_t records_expected = 0;
  uint64_t records_done = 0;
  uint64_t records_committed = 0;
  uint64_t rejected_records = 0;
  std::vector<std::string> reject_samples;
  std::map<std::string, double> metrics;
  ShardCounts shards;
};
/// How far a dataset is in one partition of its topic. Offsets.
struct TopicPartition {
  uint32_t partition = 0;
  uint64_t begin = 0;
  uint64_t cut = 0;
  uint64_t committed = 0;
  std::optional<uint64_t> end;         // of the dataset; absent: never, or not known yet
  std::optional<uint64_t> log_begin;   // absent: the topic was not seen yet
  std::optional<uint64_t> stable_end;  // likewise
  std::optional<uint64_t> lag;         // likewise
  std::optional<double> lag_seconds;   // likewise
  std::optional<uint64_t> held_back;   // likewise
  uint64_t open_ranges = 0;
  uint64_t lost = 0;
};
/// From the timestamps of records until every server had applied their minibatch.
struct Delay {
  uint64_t records = 0;  // of the last half minute to minute
  double p50_seconds = 0;
  double p99_seconds = 0;
  uint64_t total_records = 0;
  double total_p50_seconds = 0;
  double total_p99_seconds = 0;
  double total_seconds = 0;       // the sum
  std::vector<uint64_t> buckets;  // records below 4 ms, 8 ms and so on, of all
};
struct Stream {
  std::string topic;
  bool open = false;
  std::string trouble;
  std::string dead_letter_trouble;
  std::optional<uint64_t> lag;  // absent: not known, for one partition at least
  std::optional<double> lag_seconds;
  std::optional<uint64_t> held_back;
  std::optional<Delay> delay;  // absent: nothing was applied yet
  std::vector<TopicPartition> partitions;
};
struct Dataset {
  uint32_t index = 0;
  std::string name;
  std::string mode = "train";  // or evaluate
  uint32_t epochs_total = 0;
  std::vector<Epoch> epochs;
  std::optional<Stream> stream;  // absent: files
};
struct DatasetList {
  std::vector<Dataset> datasets;
};

}  // namespace muster::scaler::rest
