#include "worker_sdk/readers/topic/topic_reader.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "base/clock.h"
#include "base/status.h"
#include "sharding/stream/stream_types.h"

namespace muster::sdk {
namespace {

constexpr std::chrono::milliseconds kDeadLetterTimeout{30'000};
constexpr std::chrono::milliseconds kDeadLetterLook{200};

kafka::ClientConfig ConfigOf(const TopicSource& topic) {
  return {topic.brokers, topic.properties, topic.secrets};
}

/// A retry cannot fix wrong settings.
absl::Status AsSettings(const absl::Status& status, const TopicSource& topic) {
  return absl::FailedPreconditionError(
      fmt::format("dataset '{}': {}", topic.dataset, Message(status)));
}

}  // namespace

std::vector<size_t> CutByOffset(const StreamWork& range, uint32_t minibatch_size,
                                std::span<const kafka::Record> records) {
  const uint32_t minibatches = StreamMinibatches(range.begin, range.end, minibatch_size);
  std::vector<size_t> begins;
  begins.reserve(size_t{minibatches} + 1);
  size_t at = 0;
  for (uint32_t k = 0; k < minibatches; ++k) {
    const uint64_t first = range.begin + uint64_t{k} * minibatch_size;
    while (at < records.size() && records[at].offset < first) ++at;
    begins.push_back(at);
  }
  begins.push_back(records.size());
  return begins;
}

TopicReader::TopicReader(std::vector<TopicSource> topics) {
  MutexLock lock(&mutex_);
  for (TopicSource& topic : topics) {
    const std::string dataset = topic.dataset;
    sources_.try_emplace(dataset, Source{std::move(topic), nullptr, nullptr});
  }
}

TopicReader::~TopicReader() = default;

absl::StatusOr<kafka::RangeReader*> TopicReader::ReaderOf(const std::string& dataset) {
  MutexLock lock(&mutex_);
  const auto it = sources_.find(dataset);
  if (it == sources_.end()) {
    return absl::InternalError(
        fmt::format("the master did not say where the topic of dataset '{}' is", dataset));
  }
  Source& source = it->second;
  if (source.reader != nullptr) return source.reader.get();
  auto reader = kafka::RangeReader::Open(
      ConfigOf(source.topic),
      {.group = source.topic.group, .record_bytes_max = source.topic.record_bytes_max});
  if (!reader.ok()) return AsSettings(reader.status(), source.topic);
  source.reader = *std::move(reader);
  return source.reader.get();
}

absl::StatusOr<kafka::Producer*> TopicReader::ProducerOf(const std::string& dataset) {
  MutexLock lock(&mutex_);
  Source& source = sources_.at(dataset);
  if (source.producer != nullptr) return source.producer.get();
  auto producer = kafka::Producer::Open(ConfigOf(source.topic));
  if (!producer.ok()) return AsSettings(producer.status(), source.topic);
  source.producer = *std::move(producer);
  return source.producer.get();
}

kafka::Producer::Message TopicReader::MessageOf(const RejectedRecord& rejected,
                                                const Writing& writing, bool with_value) {
  const StreamWork& range = *writing.work.stream;
  const kafka::Record& record = writing.records.topic->all()[rejected.position];
  kafka::Producer::Message message{
      .topic = writing.topic, .value = {}, .key = {}, .headers = {}, .partition = {}};
  if (record.has_value && with_value) message.value = record.value;
  message.key = record.key;
  message.headers = {{"muster.reason", rejected.reason},
                     {"muster.topic", range.topic},
                     {"muster.partition", fmt::format("{}", range.partition.value())},
                     {"muster.offset", fmt::format("{}", record.offset)}};
  if (!with_value)
    message.headers.emplace_back("muster.bytes", fmt::format("{}", record.value.size()));
  return message;
}

absl::StatusOr<ShardRecords> TopicReader::Read(const ShardWork& work,
                                               const KeepWaiting& keep_waiting) {
  const StreamWork& range = *work.stream;
  if (range.begin >= range.end || work.minibatch_size == 0) {
    return absl::InternalError(
        fmt::format("the master granted offsets [{}, {}) in minibatches of {}", range.begin,
                    range.end, work.minibatch_size));
  }
  MUSTER_ASSIGN_OR_RETURN(kafka::RangeReader * reader, ReaderOf(work.dataset_name));
  absl::StatusOr<std::unique_ptr<kafka::Records>> read =
      reader->Read({range.topic, range.partition.value(), range.begin, range.end}, keep_waiting);
  // The records are too large for the job's limit on every worker. So it is not this process that
  // lacks something.
  if (absl::IsResourceExhausted(read.status())) {
    return absl::InvalidArgumentError(read.status().message());
  }
  MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<kafka::Records> records, std::move(read));
  ShardRecords result;
  result.records.reserve(records->all().size());
  for (const kafka::Record& record : records->all()) result.records.push_back(record.value);
  result.minibatches = CutByOffset(range, work.minibatch_size, records->all());
  result.topic = std::move(records);
  return result;
}

bool TopicReader::KeepsRejected(const ShardWork& work) const {
  MutexLock lock(&mutex_);
  const auto it = sources_.find(work.dataset_name);
  return it != sources_.end() && !it->second.topic.dead_letter_topic.empty();
}

absl::Status TopicReader::WriteRejected(const ShardWork& work, const ShardRecords& records,
                                        std::span<const RejectedRecord> rejected,
                                        const KeepWaiting& keep_waiting) {
  if (rejected.empty() || !KeepsRejected(work)) return absl::OkStatus();
  MutexLock one_by_one(&writing_);
  Writing writing{work, records, rejected, "", keep_waiting};
  {
    MutexLock lock(&mutex_);
    writing.topic = sources_.at(work.dataset_name).topic.dead_letter_topic;
  }
  absl::Status written = TryWrite(writing, /*with_values=*/true);
  if (absl::IsResourceExhausted(written)) written = TryWrite(writing, /*with_values=*/false);
  if (!absl::IsNotFound(written) && !absl::IsPermissionDenied(written)) return written;
  // An operator may create the topic or grant the right later. So this is not the shard's fault,
  // and it is not retried at once.
  const std::string trouble(Message(written));
  for (auto left = kDeadLetterTimeout; left.count() > 0 && keep_waiting(trouble);
       left -= kDeadLetterLook) {
    SleepFor(kDeadLetterLook);
  }
  return absl::UnavailableError(trouble);
}

absl::Status TopicReader::TryWrite(const Writing& writing, bool with_values) {
  const std::string& dataset = writing.work.dataset_name;
  MUSTER_ASSIGN_OR_RETURN(kafka::Producer * producer, ProducerOf(dataset));
  absl::Status written;
  for (const RejectedRecord& rejected : writing.rejected) {
    if (written.ok()) written = producer->Send(MessageOf(rejected, writing, with_values));
  }
  for (auto left = kDeadLetterTimeout; written.ok(); left -= kDeadLetterLook) {
    const absl::Status flushed = producer->Flush(kDeadLetterLook);
    if (flushed.ok()) return flushed;
    const bool wait = absl::IsUnavailable(flushed) && left.count() > 0;
    if (!wait || !writing.keep_waiting(Message(flushed))) written = flushed;
  }
  std::unique_ptr<kafka::Producer> ended;  // destroyed after the lock is released
  MutexLock lock(&mutex_);
  ended = std::move(sources_.at(dataset).producer);
  return written;
}

std::string TopicReader::NameOf(const ShardWork& work) const {
  const StreamWork& range = *work.stream;
  return fmt::format("offsets [{}, {}) of topic {}[{}]", range.begin, range.end, range.topic,
                     range.partition.value());
}

std::string TopicReader::LocationOf(const ShardWork& work, const ShardRecords& records,
                                    size_t position) const {
  return fmt::format("{}[{}]@{}", work.stream->topic, work.stream->partition.value(),
                     records.topic->all()[position].offset);
}

}  // namespace muster::sdk
