#include "kafka/internal/partition_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/status.h"

namespace muster::kafka::internal {
namespace {

/// How long to wait for a record: at first, and after several waits without a record.
constexpr int kPollMinMs = 2, kPollMaxMs = 50;
/// From this wait on, librdkafka is asked to look again. A fetch takes less.
constexpr int kAskAtMs = 16;
constexpr std::chrono::milliseconds kAskEvery{1'000};
constexpr size_t kBatch = 1'000;
/// Half of queued.min.messages. Reading ahead also stops at that number.
constexpr uint64_t kNudgeRecords = 50'000;
/// The most bytes of one range in memory.
constexpr uint64_t kRangeBytesMax = uint64_t{4} << 30;
constexpr int kDoubtsMax = 2;

uint64_t OffsetOf(const rd_kafka_message_t& message) {
  return static_cast<uint64_t>(message.offset);
}

}  // namespace

bool WorthReadingAhead(const RangeReader::Range& range, int64_t high) {
  const uint64_t end = static_cast<uint64_t>(std::max<int64_t>(high, 0));
  return end >= range.end && end - range.end >= range.end - range.begin;
}

PartitionStream::PartitionStream(std::shared_ptr<Client> client, std::string topic,
                                 uint32_t partition, const Options& options)
    : client_(std::move(client)),
      topic_(std::move(topic)),
      partition_(partition),
      nudge_bytes_(std::max<uint64_t>(options.read_ahead_bytes / 2, 1)),
      dropped_bytes_max_(options.dropped_bytes_max),
      renew_after_(options.renew_after),
      handle_(rd_kafka_topic_new(client_->get(), topic_.c_str(), nullptr)) {}

absl::StatusOr<std::unique_ptr<Records>> PartitionStream::Read(
    const RangeReader::Range& range, const RangeReader::KeepWaiting& keep_waiting) {
  absl::StatusOr<std::unique_ptr<Records>> records = TryRead(range, keep_waiting);
  // After an error, records that were taken are not pending any more, so this cannot continue.
  if (!records.ok()) good_ = false;
  return records;
}

absl::StatusOr<std::unique_ptr<Records>> PartitionStream::TryRead(
    const RangeReader::Range& range, const RangeReader::KeepWaiting& keep_waiting) {
  doubts_ = 0;
  poll_ms_ = kPollMinMs;
  waited_ = told_ = std::chrono::milliseconds(0);
  trouble_.clear();
  MUSTER_RETURN_IF_ERROR(GoTo(range.begin));
  auto records = std::make_unique<TopicRecords>(client_);
  while (true) {
    MUSTER_ASSIGN_OR_RETURN(const bool all, TakePending(range, records.get()));
    if (all) break;
    // Only records after this range may have failed. That error belongs to another range.
    MUSTER_RETURN_IF_ERROR(pending_error_);
    if (records->bytes() > kRangeBytesMax) {
      return absl::ResourceExhaustedError(
          fmt::format("{} have more than {} bytes; set a smaller minibatchesPerShard or "
                      "minibatchSize",
                      NameOf(range), kRangeBytesMax));
    }
    if (WantsMore()) ReadOn();
    MUSTER_RETURN_IF_ERROR(Fetch(range, keep_waiting));
  }
  if (WantsMore()) ReadOn();
  position_ = range.end;
  bytes_per_offset_ = records->bytes() / (range.end - range.begin) + 1;
  if (!pending_error_.ok()) good_ = false;
  return records;
}

std::string PartitionStream::NameOf(const RangeReader::Range& range) const {
  return fmt::format("topic '{}', partition {}, offsets [{}, {})", topic_, partition_, range.begin,
                     range.end);
}

bool PartitionStream::HasMoreAfter(const RangeReader::Range& range) const {
  if (!good_) return false;
  int64_t low = 0, high = 0;
  const rd_kafka_resp_err_t error = rd_kafka_get_watermark_offsets(
      client_->get(), topic_.c_str(), static_cast<int32_t>(partition_), &low, &high);
  return error == RD_KAFKA_RESP_ERR_NO_ERROR && WorthReadingAhead(range, high);
}

void PartitionStream::ReadOn() {
  // The fetching thread of librdkafka may sleep for up to a second when everything that may be read
  // ahead has arrived. Before version 2.2, there is no setting for this. Any request wakes it, so
  // this sends one and does not wait for the answer. The request also makes librdkafka look for a
  // topic partition that it does not know yet.
  taken_bytes_ = taken_records_ = 0;
  const ListRef list(rd_kafka_topic_partition_list_new(1));
  rd_kafka_topic_partition_list_add(list.get(), topic_.c_str(), static_cast<int32_t>(partition_))
      ->offset = RD_KAFKA_OFFSET_END;
  rd_kafka_offsets_for_times(client_->get(), list.get(), 0);
}

bool PartitionStream::WantsMore() const {
  return taken_bytes_ >= nudge_bytes_ || taken_records_ >= kNudgeRecords;
}

absl::Status PartitionStream::GoTo(uint64_t offset) {
  if (good_ && position_ == offset) return absl::OkStatus();
  // Records that were read ahead also help for a range that begins a little later. If there are
  // more workers than topic partitions, a worker reads every n-th range. So it reads past the
  // ranges in between.
  if (good_ && position_ < offset && IsNear(offset)) {
    while (!pending_.empty() && OffsetOf(*pending_.front()) < offset) pending_.pop_front();
    position_ = offset;
    return absl::OkStatus();
  }
  return Restart(offset);
}

absl::Status PartitionStream::Restart(uint64_t offset) {
  Stop();
  position_ = fetched_ = offset;
  ++starts_;
  // A new queue has nothing of what an earlier start has put into the old one, errors included.
  queue_.reset(rd_kafka_queue_new(client_->get()));
  const int failed = rd_kafka_consume_start_queue(handle_.get(), static_cast<int32_t>(partition_),
                                                  static_cast<int64_t>(offset), queue_.get());
  if (failed != 0) {
    queue_.reset();
    return absl::AbortedError(fmt::format("topic '{}', partition {}: {}", topic_, partition_,
                                          rd_kafka_err2str(rd_kafka_last_error())));
  }
  good_ = true;
  return absl::OkStatus();
}

void PartitionStream::Stop() {
  good_ = false;
  pending_.clear();
  pending_error_ = absl::OkStatus();
  if (queue_ == nullptr) return;
  rd_kafka_consume_stop(handle_.get(), static_cast<int32_t>(partition_));
  queue_.reset();
}

bool PartitionStream::IsNear(uint64_t offset) const {
  return offset <= fetched_ || offset - fetched_ <= dropped_bytes_max_ / bytes_per_offset_;
}

absl::StatusOr<bool> PartitionStream::TakePending(const RangeReader::Range& range,
                                                  TopicRecords* records) {
  while (!pending_.empty() && OffsetOf(*pending_.front()) < range.end) {
    const rd_kafka_message_t& message = *pending_.front();
    const uint64_t bytes = message.len + message.key_len;
    if (bytes > range.record_bytes_max) {
      return absl::ResourceExhaustedError(
          fmt::format("topic '{}', partition {}, offset {}: the record has {} bytes, but "
                      "kafka.recordBytesMax is {}",
                      topic_, partition_, message.offset, bytes, range.record_bytes_max));
    }
    records->Add(std::move(pending_.front()));
    pending_.pop_front();
  }
  return !pending_.empty() || fetched_ >= range.end;
}

absl::Status PartitionStream::Fetch(const RangeReader::Range& range,
                                    const RangeReader::KeepWaiting& keep_waiting) {
  std::array<rd_kafka_message_t*, kBatch> batch{};
  // What is after the range stays in librdkafka's queue, so it counts as read ahead.
  const size_t most = std::min<uint64_t>(batch.size(), range.end - fetched_);
  // There is no timeout, because with one, a batch that is not full would always wait for all of
  // it.
  ssize_t count = rd_kafka_consume_batch_queue(queue_.get(), 0, batch.data(), most);
  if (count <= 0) {
    batch[0] = rd_kafka_consume_queue(queue_.get(), poll_ms_);
    count = batch[0] == nullptr ? 0 : 1;
  }
  if (count == 0) return Wait(range, keep_waiting);
  poll_ms_ = kPollMinMs;
  const uint64_t starts = starts_;
  absl::Status status;
  for (ssize_t i = 0; i < count; ++i) {
    MessageRef message(batch[static_cast<size_t>(i)]);
    const bool ours = pending_error_.ok() && status.ok() && starts == starts_;
    if (ours) status = Take(range, std::move(message));
  }
  return status;
}

absl::Status PartitionStream::Wait(const RangeReader::Range& range,
                                   const RangeReader::KeepWaiting& keep_waiting) {
  const std::chrono::milliseconds waited(poll_ms_);
  waited_ += waited;
  told_ += waited;
  // The records of a range exist. So the wait is because of librdkafka's sleep, because it does not
  // know the partition yet, or because of a problem.
  if ((poll_ms_ >= kAskAtMs && poll_ms_ < kPollMaxMs) || told_ >= kAskEvery) {
    told_ = std::chrono::milliseconds(0);
    ReadOn();
  }
  poll_ms_ = std::min(2 * poll_ms_, kPollMaxMs);
  rd_kafka_poll(client_->get(), 0);  // runs callbacks
  if (trouble_.empty()) trouble_ = client_->last_error();
  if (!keep_waiting(trouble_)) {
    return absl::CancelledError(fmt::format("{}: the read was cancelled", NameOf(range)));
  }
  if (waited_ < renew_after_) return absl::OkStatus();
  return absl::AbortedError(
      fmt::format("{}: no record came for {} ms", NameOf(range), waited_.count()));
}

absl::Status PartitionStream::Take(const RangeReader::Range& range, MessageRef message) {
  if (message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
    // Everything before this record was read, even if some offsets have no record.
    fetched_ = std::max(fetched_, OffsetOf(*message));
    return absl::OkStatus();
  }
  if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR) {
    const absl::Status failed = TakeError(range, *message);
    if (failed.ok() || absl::IsAborted(failed)) return failed;
    if (fetched_ < position_) {
      // The error is about records before the range. They must be skipped and not read.
      return Restart(position_);
    }
    pending_error_ = failed;
    return absl::OkStatus();
  }
  trouble_.clear();
  waited_ = std::chrono::milliseconds(0);
  taken_bytes_ += message->len + message->key_len;
  ++taken_records_;
  fetched_ = OffsetOf(*message) + 1;
  if (OffsetOf(*message) >= position_) pending_.push_back(std::move(message));
  return absl::OkStatus();
}

absl::Status PartitionStream::TakeError(const RangeReader::Range& range,
                                        const rd_kafka_message_t& message) {
  const absl::Status status = ToStatus(message.err, NameOf(range));
  if (absl::IsOutOfRange(status)) return TakeGone(range, message);
  if (absl::IsResourceExhausted(status) || absl::IsDataLoss(status)) return status;
  trouble_ = Message(status);
  return absl::OkStatus();
}

absl::Status PartitionStream::TakeGone(const RangeReader::Range& range,
                                       const rd_kafka_message_t& message) {
  // librdkafka does not drop this error when a topic partition is stopped and started again. So an
  // error about another offset may come from an earlier start.
  if (OffsetOf(message) != fetched_ && doubts_ < kDoubtsMax) {
    ++doubts_;
    const bool any = !pending_.empty();
    // What was taken stays taken. The rest is fetched again.
    std::deque<MessageRef> pending = std::move(pending_);
    const uint64_t position = position_;
    MUSTER_RETURN_IF_ERROR(Restart(fetched_));
    position_ = position;
    if (any) pending_ = std::move(pending);
    return absl::OkStatus();
  }
  const char* text = rd_kafka_message_errstr(&message);
  return absl::OutOfRangeError(
      fmt::format("{}: the brokers no longer have records from offset {} on ({})", NameOf(range),
                  fetched_, text == nullptr ? rd_kafka_err2str(message.err) : text));
}

}  // namespace muster::kafka::internal
