#include "kafka/range_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>
#include <list>
#include <memory>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "kafka/internal/client.h"

namespace muster::kafka {
namespace {

using internal::Client;
using internal::ErrorRef;
using internal::ListRef;
using internal::MessageRef;
using internal::QueueRef;
using internal::ToStatus;

/// How long to wait for a record: at first, and after several waits without a record.
constexpr int kPollMinMs = 2, kPollMaxMs = 100;
constexpr size_t kBatch = 1'000;
constexpr int kNudgeMs = 1;
/// Half of queued.min.messages. Reading ahead also stops at that number.
constexpr uint64_t kNudgeRecords = 50'000;
/// The most bytes of one range in memory.
constexpr uint64_t kRangeBytesMax = uint64_t{4} << 30;

class RecordsImpl final : public Records {
 public:
  /// It holds the client, because a librdkafka client does not end while some of its messages are
  /// held.
  explicit RecordsImpl(std::shared_ptr<Client> client) : client_(std::move(client)) {}

  void Add(MessageRef message) {
    const rd_kafka_message_t& from = *message;
    Record record;
    record.has_value = from.payload != nullptr;
    if (record.has_value) record.value = {static_cast<const char*>(from.payload), from.len};
    if (from.key != nullptr) {
      record.key = std::string_view(static_cast<const char*>(from.key), from.key_len);
    }
    const int64_t timestamp = rd_kafka_message_timestamp(&from, nullptr);
    record.timestamp = std::chrono::milliseconds(std::max<int64_t>(timestamp, 0));
    record.offset = static_cast<uint64_t>(from.offset);
    bytes_ += from.len + from.key_len;
    records_.push_back(record);
    messages_.push_back(std::move(message));
  }

  std::vector<Header> HeadersOf(size_t index) const override {
    std::vector<Header> headers;
    rd_kafka_headers_t* list = nullptr;
    if (rd_kafka_message_headers(messages_[index].get(), &list) != RD_KAFKA_RESP_ERR_NO_ERROR) {
      return headers;
    }
    const char* name = nullptr;
    const void* value = nullptr;
    size_t bytes = 0;
    for (size_t i = 0;
         rd_kafka_header_get_all(list, i, &name, &value, &bytes) == RD_KAFKA_RESP_ERR_NO_ERROR;
         ++i) {
      headers.emplace_back(name, std::nullopt);
      if (value != nullptr) {
        headers.back().second = std::string_view(static_cast<const char*>(value), bytes);
      }
    }
    return headers;
  }

  uint64_t bytes() const { return bytes_; }

 private:
  const std::shared_ptr<Client> client_;  // destroyed after the messages
  std::vector<MessageRef> messages_;
  uint64_t bytes_ = 0;
};

/// A consumer that reads one topic partition at a time.
class Consumer {
 public:
  Consumer(std::shared_ptr<Client> client, const RangeReader::Options& options)
      : client_(std::move(client)),
        queue_(rd_kafka_queue_get_consumer(client_->get())),
        record_bytes_max_(options.record_bytes_max),
        nudge_bytes_(std::max<uint64_t>(options.read_ahead_bytes / 2, 1)) {}

  bool IsOn(const RangeReader::Range& range) const {
    return topic_ == range.topic && partition_ == range.partition;
  }
  /// Orders consumers by how useful they are for the range. The best one is the nearest before its
  /// begin. Those behind it come last.
  uint64_t Usefulness(const RangeReader::Range& range) const {
    return position_ <= range.begin ? position_ + 1 : 0;
  }

  absl::StatusOr<std::unique_ptr<Records>> Read(const RangeReader::Range& range,
                                                const RangeReader::KeepWaiting& keep_waiting) {
    absl::StatusOr<std::unique_ptr<Records>> records = TryRead(range, keep_waiting);
    // After an error, records that were taken are not pending any more, so this consumer cannot
    // continue.
    if (!records.ok()) good_ = false;
    return records;
  }

 private:
  absl::StatusOr<std::unique_ptr<Records>> TryRead(const RangeReader::Range& range,
                                                   const RangeReader::KeepWaiting& keep_waiting) {
    MUSTER_RETURN_IF_ERROR(GoTo(range));
    auto records = std::make_unique<RecordsImpl>(client_);
    trouble_.clear();
    while (true) {
      MUSTER_ASSIGN_OR_RETURN(const bool all, TakePending(range, records.get()));
      if (all) break;
      // Only records after this range may have failed. That error belongs to another range.
      MUSTER_RETURN_IF_ERROR(pending_error_);
      if (records->bytes() > kRangeBytesMax) {
        return absl::ResourceExhaustedError(fmt::format(
            "{} have more than {} bytes; set a smaller minibatchesPerShard or minibatchSize",
            NameOf(range), kRangeBytesMax));
      }
      if (WantsMore()) ReadOn(range);
      MUSTER_RETURN_IF_ERROR(Fetch(range, keep_waiting));
    }
    if (WantsMore()) ReadOn(range);
    position_ = range.end;
    bytes_per_offset_ = records->bytes() / (range.end - range.begin) + 1;
    if (!pending_error_.ok()) good_ = false;
    return records;
  }

  static std::string NameOf(const RangeReader::Range& range) {
    return fmt::format("topic '{}', partition {}, offsets [{}, {})", range.topic, range.partition,
                       range.begin, range.end);
  }

  /// The fetching thread of librdkafka may sleep for up to a second although records are wanted
  /// sooner. It does so when everything that may be read ahead has arrived, or when another offset
  /// was assigned. Before version 2.2, there is no setting for this. Any request wakes it, so this
  /// sends one and ignores the answer.
  void ReadOn(const RangeReader::Range& range) {
    taken_bytes_ = taken_records_ = 0;
    const ListRef list = ListOf(range);
    list->elems[0].offset = RD_KAFKA_OFFSET_END;
    rd_kafka_offsets_for_times(client_->get(), list.get(), kNudgeMs);
  }

  bool WantsMore() const { return taken_bytes_ >= nudge_bytes_ || taken_records_ >= kNudgeRecords; }

  ListRef ListOf(const RangeReader::Range& range) const {
    ListRef list(rd_kafka_topic_partition_list_new(1));
    rd_kafka_topic_partition_list_add(list.get(), range.topic.c_str(),
                                      static_cast<int32_t>(range.partition))
        ->offset = static_cast<int64_t>(range.begin);
    return list;
  }

  /// Makes the first record of the range the next one.
  absl::Status GoTo(const RangeReader::Range& range) {
    if (good_ && IsOn(range) && position_ == range.begin) return absl::OkStatus();
    poll_ms_ = kPollMinMs;
    // Records that were read ahead also help for a range that begins a little later. If there are
    // more workers than topic partitions, a worker reads every n-th range. So it reads past the
    // ranges in between.
    if (good_ && IsOn(range) && position_ < range.begin && IsNear(range.begin)) {
      while (!pending_.empty() && OffsetOf(pending_.front()) < range.begin) pending_.pop_front();
      position_ = range.begin;
      return absl::OkStatus();
    }
    ++assigned_;
    pending_.clear();
    pending_error_ = absl::OkStatus();
    topic_ = range.topic;
    partition_ = range.partition;
    position_ = fetched_ = range.begin;
    good_ = true;
    const ListRef list = ListOf(range);
    return ToStatus(rd_kafka_assign(client_->get(), list.get()), NameOf(range));
  }

  /// True if the records before `offset` were fetched, or if there are no more than what is read
  /// ahead anyway.
  bool IsNear(uint64_t offset) const {
    return offset <= fetched_ || offset - fetched_ <= nudge_bytes_ / bytes_per_offset_;
  }

  static uint64_t OffsetOf(const MessageRef& message) {
    return static_cast<uint64_t>(message->offset);
  }

  /// Moves the pending records of the range to `records`. True if the range is complete.
  absl::StatusOr<bool> TakePending(const RangeReader::Range& range, RecordsImpl* records) {
    while (!pending_.empty() && OffsetOf(pending_.front()) < range.end) {
      const rd_kafka_message_t& message = *pending_.front();
      const uint64_t bytes = message.len + message.key_len;
      if (bytes > record_bytes_max_) {
        return absl::ResourceExhaustedError(
            fmt::format("topic '{}', partition {}, offset {}: the record has {} bytes, but "
                        "kafka.recordBytesMax "
                        "is {}",
                        range.topic, range.partition, message.offset, bytes, record_bytes_max_));
      }
      records->Add(std::move(pending_.front()));
      pending_.pop_front();
    }
    return !pending_.empty() || fetched_ >= range.end;
  }

  absl::Status Fetch(const RangeReader::Range& range,
                     const RangeReader::KeepWaiting& keep_waiting) {
    std::array<rd_kafka_message_t*, kBatch> batch{};
    // There is no timeout, because with one, a batch that is not full would always wait for all of
    // it.
    const ssize_t count = rd_kafka_consume_batch_queue(queue_.get(), 0, batch.data(), batch.size());
    const uint64_t assigned = assigned_;
    for (ssize_t i = 0; i < count; ++i) {
      MessageRef message(batch[static_cast<size_t>(i)]);
      const bool ours = pending_error_.ok() && assigned == assigned_;
      if (ours) pending_error_ = Take(range, std::move(message));
    }
    if (count > 0) {
      poll_ms_ = kPollMinMs;
      return absl::OkStatus();
    }
    if (MessageRef message(rd_kafka_consume_queue(queue_.get(), poll_ms_)); message != nullptr) {
      poll_ms_ = kPollMinMs;
      pending_error_ = Take(range, std::move(message));
      return absl::OkStatus();
    }
    // The records of a range exist. So the wait is because of librdkafka's sleep, or because of a
    // problem.
    if (poll_ms_ < kPollMaxMs) ReadOn(range);
    poll_ms_ = std::min(2 * poll_ms_, kPollMaxMs);
    if (trouble_.empty()) trouble_ = client_->last_error();
    if (keep_waiting(trouble_)) return absl::OkStatus();
    return absl::CancelledError(fmt::format("{}: the read was cancelled", NameOf(range)));
  }

  absl::Status Take(const RangeReader::Range& range, MessageRef message) {
    // Records of an earlier assignment should not arrive, but if they do, they are dropped.
    const bool foreign =
        message->rkt != nullptr && (static_cast<uint32_t>(message->partition) != partition_ ||
                                    topic_ != rd_kafka_topic_name(message->rkt));
    if (foreign) return absl::OkStatus();
    if (message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
      // Everything before this record was read, even if some offsets have no record.
      fetched_ = std::max(fetched_, OffsetOf(message));
      return absl::OkStatus();
    }
    if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR) {
      const absl::Status failed = TakeError(range, *message);
      if (failed.ok() || fetched_ >= position_) return failed;
      // The error is about records before the range. They must be skipped and not read.
      good_ = false;
      return GoTo(range);
    }
    trouble_.clear();
    taken_bytes_ += message->len + message->key_len;
    ++taken_records_;
    if (OffsetOf(message) < position_) {
      fetched_ = std::max(fetched_, OffsetOf(message) + 1);
      return absl::OkStatus();
    }
    fetched_ = OffsetOf(message) + 1;
    pending_.push_back(std::move(message));
    return absl::OkStatus();
  }

  absl::Status TakeError(const RangeReader::Range& range, const rd_kafka_message_t& message) {
    const char* text = rd_kafka_message_errstr(&message);
    absl::Status status = ToStatus(message.err, NameOf(range));
    if (absl::IsOutOfRange(status)) {
      return absl::OutOfRangeError(fmt::format(
          "{}: the brokers no longer have records from offset {} on ({})", NameOf(range), fetched_,
          text == nullptr ? rd_kafka_err2str(message.err) : text));
    }
    if (absl::IsResourceExhausted(status) || absl::IsDataLoss(status)) return status;
    trouble_ = Message(status);
    return absl::OkStatus();
  }

  const std::shared_ptr<Client> client_;
  const QueueRef queue_;
  const uint64_t record_bytes_max_;
  const uint64_t nudge_bytes_;
  /// Counted since librdkafka was last told to read on.
  uint64_t taken_bytes_ = 0, taken_records_ = 0;
  /// About the average of the last range.
  uint64_t bytes_per_offset_ = 1;
  int poll_ms_ = kPollMinMs;
  std::string topic_;
  uint32_t partition_ = 0;
  /// True if it is assigned and nothing has gone wrong since.
  bool good_ = false;
  uint64_t assigned_ = 0;  // how often
  /// The first offset whose record was not returned yet.
  uint64_t position_ = 0;
  /// Every record before this offset was fetched, or does not exist.
  uint64_t fetched_ = 0;
  std::deque<MessageRef> pending_;
  /// The error that came after the records of `pending_`, if any.
  absl::Status pending_error_;
  std::string trouble_;
};

class RangeReaderImpl final : public RangeReader {
 public:
  RangeReaderImpl(ClientConfig config, Options options)
      : config_(std::move(config)), options_(std::move(options)) {}

  absl::StatusOr<std::unique_ptr<Records>> Read(const Range& range,
                                                const KeepWaiting& keep_waiting) override {
    MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<Consumer> consumer, BorrowOrWait(range, keep_waiting));
    auto records = consumer->Read(range, keep_waiting);
    std::unique_ptr<Consumer> evicted;  // destroyed after the lock is released
    MutexLock lock(&mutex_);
    idle_.push_front(std::move(consumer));
    if (idle_.size() > options_.idle_max) {
      evicted = std::move(idle_.back());
      idle_.pop_back();
    }
    return records;
  }

  absl::StatusOr<std::unique_ptr<Consumer>> NewConsumer() const {
    MUSTER_ASSIGN_OR_RETURN(
        std::unique_ptr<Client> client,
        Client::Open(RD_KAFKA_CONSUMER, config_,
                     {{"fetch.wait.max.ms", "100"},
                      {"fetch.error.backoff.ms", "100"},
                      {"queued.max.messages.kbytes",
                       std::to_string(std::max<uint64_t>(options_.read_ahead_bytes >> 10, 1))},
                      // With a lower limit, a larger batch would break the connection again and
                      // again. It must arrive, so that its record can be refused.
                      {"receive.message.max.bytes", "2147483647"}},
                     {{"group.id", options_.group},
                      {"enable.auto.commit", "false"},
                      {"enable.auto.offset.store", "false"},
                      {"enable.partition.eof", "true"},
                      {"allow.auto.create.topics", "false"},
                      {"auto.offset.reset", "error"},
                      {"isolation.level", "read_committed"}}));
    return std::make_unique<Consumer>(std::move(client), options_);
  }

 private:
  /// Borrows a consumer. If a file with a secret is just being replaced, it waits for that.
  absl::StatusOr<std::unique_ptr<Consumer>> BorrowOrWait(const Range& range,
                                                         const KeepWaiting& keep_waiting) {
    while (true) {
      absl::StatusOr<std::unique_ptr<Consumer>> consumer = Borrow(range);
      if (consumer.ok()) return consumer;
      const std::string trouble(Message(consumer.status()));
      if (!keep_waiting(trouble)) return absl::CancelledError(trouble);
      SleepFor(std::chrono::milliseconds(kPollMaxMs));
    }
  }

  /// The consumer that already has most of the range, or any other one. If all are in use, a new
  /// one.
  absl::StatusOr<std::unique_ptr<Consumer>> Borrow(const Range& range) {
    MutexLock lock(&mutex_);
    auto best = idle_.end();
    for (auto it = idle_.begin(); it != idle_.end(); ++it) {
      if (!(*it)->IsOn(range)) continue;
      if (best == idle_.end() || (*it)->Usefulness(range) > (*best)->Usefulness(range)) best = it;
    }
    // Each consumer reads ahead in its own topic partition. So a consumer of another partition is
    // taken only if there are many.
    if (best == idle_.end() && idle_.size() >= options_.idle_max) best = std::prev(idle_.end());
    if (best == idle_.end()) return NewConsumer();
    std::unique_ptr<Consumer> consumer = std::move(*best);
    idle_.erase(best);
    return consumer;
  }

  const ClientConfig config_;
  const Options options_;
  Mutex mutex_;
  /// The most recently used one is in front.
  std::list<std::unique_ptr<Consumer>> idle_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace

absl::StatusOr<std::unique_ptr<RangeReader>> RangeReader::Open(const ClientConfig& config,
                                                               Options options) {
  MUSTER_RETURN_IF_ERROR(CheckConfig(config));
  return std::make_unique<RangeReaderImpl>(config, std::move(options));
}

}  // namespace muster::kafka
