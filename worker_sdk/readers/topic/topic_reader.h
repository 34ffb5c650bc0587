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

/// Where each minibatch begins among the records of a shard, and where the last one ends: there are
/// minibatches + 1 indices. Minibatches are equal parts of the shard's offsets, so every run cuts
/// in the same way, and a minibatch may have no record. A pure function. `positions`: of each
/// record among the offsets, ascending and less than `offsets`.
std::vector<size_t> CutByOffset(uint64_t offsets, uint32_t minibatches,
                                std::span<const uint64_t> positions);

/// Reads shards that are ranges of a topic. Clients are kept between shards. Thread-safe.
class TopicReader final : public ShardReader {
 public:
  /// `topics` are those of the job. It connects when a topic is first read.
  explicit TopicReader(std::vector<TopicSource> topics);
  ~TopicReader() override;

  /// The committed records of `work`, range by range, by offset. It waits for brokers. kOutOfRange
  /// if retention has deleted some of the offsets; kDataLoss if a record is damaged;
  /// kInvalidArgument if a record, or all together, are too large; kFailedPrecondition if the
  /// settings are wrong or a secret is missing.
  absl::StatusOr<ShardRecords> Read(const ShardWork& work,
                                    const KeepWaiting& keep_waiting) override;
  void Expect(std::span<const ShardWork> works) override;
  std::string NameOf(const ShardWork& work) const override;
  /// "topic[partition]@offset".
  std::string LocationOf(const ShardWork& work, const ShardRecords& records,
                         size_t position) const override;

  /// True if the dataset has a dead-letter topic.
  bool KeepsRejected(const ShardWork& work) const override;
  /// Writes to the dead-letter topic. If a value is too large for the brokers, all records are
  /// written without values. kUnavailable if the brokers, the topic or the right to write were
  /// missing for half a minute, or if the wait was ended.
  absl::Status WriteRejected(const ShardWork& work, const ShardRecords& records,
                             std::span<const RejectedRecord> rejected,
                             const KeepWaiting& keep_waiting) override;

 private:
  struct Source {
    TopicSource topic;
    std::shared_ptr<kafka::RangeReader> reader;
    std::string topic_name;  // of `reader`
    std::unique_ptr<kafka::Producer> producer;
  };
  /// Where a shard's records are.
  struct Place {
    kafka::RangeReader* reader;
    std::vector<kafka::RangeReader::Range> ranges;
  };
  absl::StatusOr<Place> PlaceOf(const ShardWork& work);
  /// One for all datasets that reach their cluster in the same way. But datasets of one topic have
  /// a reader each, because they are in different places of it.
  absl::StatusOr<std::shared_ptr<kafka::RangeReader>> ReaderFor(const TopicSource& source,
                                                                const std::string& topic) const
      MUSTER_REQUIRES(mutex_);
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
  /// By dataset. Readers are never replaced. The holder of `writing_` may replace producers.
  std::map<std::string, Source> sources_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster::sdk
