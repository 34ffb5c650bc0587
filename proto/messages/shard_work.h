#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/words/limits.h"
#include "base/words/offset_range.h"
#include "base/words/types.h"

/// What a worker needs to read a shard.
namespace muster {

/// The records of a shard, if they are of a topic: ranges of offsets, one after the other.
struct StreamWork {
  std::string topic;
  std::vector<OffsetRange> ranges;
  static void Fields(auto& f, auto& s) {
    f(1, "topic", s.topic, {.most = most::kNameBytes});
    f(5, "ranges", s.ranges, {.most = most::kRangesOfShard});
  }
  friend bool operator==(const StreamWork&, const StreamWork&) = default;
};

/// A file of which a shard has records.
struct SourceFile {
  std::string path;
  /// The file's pin: a file of another size, or whose sampled blocks hash differently, must be
  /// refused.
  uint64_t bytes = 0;
  uint64_t hash = 0;
  static void Fields(auto& f, auto& s) {
    f(1, "path", s.path, {.raw = true});
    f(2, "bytes", s.bytes);
    f(3, "hash", s.hash, {.fixed = true});
  }
  friend bool operator==(const SourceFile&, const SourceFile&) = default;
};

/// Neighbouring records of a file; or neighbouring record numbers, which have no file and no bytes.
struct SourceRun {
  uint32_t file = 0;  // position in ShardWork::files
  /// In the file, from 0; a header is not counted. Without a file, the number itself.
  uint64_t first_record = 0;
  uint32_t record_count = 0;
  /// Bytes that hold the records. They begin with a record, and may hold others before and behind.
  uint64_t byte_begin = 0;
  uint64_t byte_end = 0;
  uint32_t records_before = 0, records_behind = 0;
  static void Fields(auto& f, auto& s) {
    f(1, "file", s.file), f(2, "first_record", s.first_record);
    f(3, "record_count", s.record_count);
    f(4, "byte_begin", s.byte_begin), f(5, "byte_end", s.byte_end);
    f(6, "records_before", s.records_before), f(7, "records_behind", s.records_behind);
  }
  friend bool operator==(const SourceRun&, const SourceRun&) = default;
};

/// What a worker needs to read a shard. Of a file it is filled in by the master's shell from the
/// source index; of a stream by its core.
struct ShardWork {
  std::string dataset_name;
  DatasetMode mode = DatasetMode::kTrain;
  uint32_t record_count = 0;
  /// Records of a whole minibatch: none has more.
  uint32_t minibatch_size = 0;
  /// Equal parts of the records (BeginOfPart).
  uint32_t minibatch_count = 0;
  /// Where the records lie, if they are of files. There are runs but no files if they are numbers.
  std::vector<SourceFile> files;
  std::vector<SourceRun> runs;
  /// The first line of each file is a header (it is in no shard).
  bool has_header = false;
  /// Records of the shard run in the order of RecordOrder(shuffle_seed, record_count); 0 = that of
  /// the runs.
  uint64_t shuffle_seed = 0;
  /// Job-wide position of the shard's first minibatch; learning-rate schedules are functions of it.
  uint64_t first_step = 0;
  /// The shard is of a topic: there are no files, there is no order, and `record_count` is the
  /// number of offsets, the most that it can hold. Minibatches are equal parts of the offsets.
  std::optional<StreamWork> stream;
  /// In mode predict: the place of the outputs, a folder or "s3://...".
  std::string output;
  static void Fields(auto& f, auto& s) {
    f(1, "dataset_name", s.dataset_name, {.most = most::kNameBytes});
    f(2, "mode", s.mode, {.most = 2});
    f(7, "record_count", s.record_count);
    f(10, "minibatch_size", s.minibatch_size);
    f(11, "has_header", s.has_header);
    f(12, "shuffle_seed", s.shuffle_seed, {.fixed = true});
    f(13, "first_step", s.first_step);
    f(14, "stream", s.stream);
    f(15, "minibatch_count", s.minibatch_count);
    f(16, "files", s.files, {.most = most::kRunsOfShard});
    f(17, "runs", s.runs, {.most = most::kRunsOfShard});
    f(18, "output", s.output, {.raw = true});
  }
  /// The records are numbers.
  bool has_numbers() const { return files.empty() && !stream.has_value() && !runs.empty(); }
  /// There is nothing to do in it, or it contradicts itself.
  std::optional<std::string> Contradiction() const;
  friend bool operator==(const ShardWork&, const ShardWork&) = default;
};

}  // namespace muster
