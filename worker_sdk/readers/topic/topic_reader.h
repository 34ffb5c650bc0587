#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "kafka/producer.h"
#include "kafka/range_reader.h"
#include "proto/messages/worker_control.h"
#include "proto/messages/worker_hello.h"
#include "worker_sdk/readers/shard_reader.h"

namespace muster::sdk {

/// Where each minibatch of a range begins among its records, and where the last ends: minibatches +
/// 1 positions. Minibatches are cut by offset, so every run cuts in the same way; a minibatch may
/// have no record. A pure function. `records` ascending by offset, all in the range.
std::vector<size_t> CutByOffset(const StreamWork& range, uint32_t minibatch_size,
                                std::span<const kafka::Record> records);

/// Reads shards that are ranges of a topic. Consumers are kept between shards. Thread-safe.
class TopicReader final : public ShardReader {
 public:
  /// `topics`: of the job. Connects when a topic is first read.
  explicit TopicReader(std::vector<TopicSource> topics);
  ~TopicReader() override;

  /// The committed records of `work`, by offset. Waits for brokers. kOutOfRange: retention has
  /// taken offsets of it; kDataLoss: a record is damaged; kInvalidArgument: one, or all together,
  /// are too large; kFailedPrecondition: the settings are wrong, or a secret is not to be found.
  absl::StatusOr<ShardRecords> Read(const ShardWork& work,
                                    const KeepWaiting& keep_waiting) override;
  std::string NameOf(const ShardWork& work) const override;
  /// "topic[partition]@offset".
  std::string LocationOf(const ShardWork& work, const ShardRecords& records,
                         size_t position) const override;

  /// Whether the dataset has a dead-letter topic.
  bool KeepsRejected(const ShardWork& work) const override;
  /// Writes to the dead-letter topic. If a value is too large for the brokers, all are written
  /// without values. kUnavailable: the brokers, the topic or the right to write were missing for
  /// half a minute, or the wait was ended.
  absl::Status WriteRejected(const ShardWork& work, const ShardRecords& records,
                             std::span<const RejectedRecord> rejected,
                             const KeepWaiting& keep_waiting) override;

 private:
  struct Source {
    TopicSource topic;
    std::unique_ptr<kafka::RangeReader> reader;
    std::unique_ptr<kafka::Producer> producer;
  };
  absl::StatusOr<kafka::RangeReader*> ReaderOf(const std::string& dataset);
  absl::StatusOr<kafka::Producer*> ProducerOf(const std::string& dataset);
  struct Writing {
    const ShardWork& work;
    const ShardRecords& records;
    std::span<const RejectedRecord> rejected;
    std::string topic;
    const KeepWaiting& keep_waiting;
  };
  static kafka::Producer::Message MessageOf(const RejectedRecord& rejected, const Writing& writing,
                                            bool with_value);
  /// Tries once. After an error, the next try has a new producer, so that records left in the old
  /// one do not count for the next shard.
  absl::Status TryWrite(const Writing& writing, bool with_values);

  /// Held from the first rejected record of a shard until the last one has arrived. So the
  /// producer's errors are about records of this shard.
  Mutex writing_;
  mutable Mutex mutex_;
  /// By dataset. Readers are never replaced; the holder of `writing_` may replace producers.
  std::map<std::string, Source> sources_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster::sdk
