#include "worker_sdk/readers/topic_reader.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "base/status.h"

namespace muster::sdk {
namespace {

constexpr std::chrono::milliseconds kDeadLetterTimeout{30'000};

kafka::ClientConfig ConfigOf(const TopicSource& topic) {
  return {topic.brokers, topic.properties, topic.secrets};
}

/// What is wrong with the settings no retry can mend.
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

absl::StatusOr<ShardRecords> TopicReader::Read(const ShardWork& work,
                                               const KeepWaiting& keep_waiting) {
  const StreamWork& range = *work.stream;
  if (range.begin >= range.end || work.minibatch_size == 0) {
    return absl::InternalError(
        fmt::format("the master granted offsets [{}, {}) in minibatches of {}", range.begin,
                    range.end, work.minibatch_size));
  }
  MUSTER_ASSIGN_OR_RETURN(kafka::RangeReader * reader, ReaderOf(work.dataset_name));
  MUSTER_ASSIGN_OR_RETURN(
      std::unique_ptr<kafka::Records> records,
      reader->Read({range.topic, range.partition.value(), range.begin, range.end}, keep_waiting));
  ShardRecords result;
  result.records.reserve(records->all().size());
  for (const kafka::Record& record : records->all()) result.records.push_back(record.value);
  result.minibatches = CutByOffset(range, work.minibatch_size, records->all());
  result.topic = std::move(records);
  return result;
}

bool TopicReader::HasDeadLetters(const std::string& dataset) const {
  MutexLock lock(&mutex_);
  const auto it = sources_.find(dataset);
  return it != sources_.end() && !it->second.topic.dead_letter_topic.empty();
}

absl::Status TopicReader::Write(const ShardWork& work, std::span<const DeadLetter> letters) {
  if (letters.empty() || !HasDeadLetters(work.dataset_name)) return absl::OkStatus();
  MutexLock writing(&writing_);
  MUSTER_ASSIGN_OR_RETURN(kafka::Producer * producer, ProducerOf(work.dataset_name));
  std::string topic;
  {
    MutexLock lock(&mutex_);
    topic = sources_.at(work.dataset_name).topic.dead_letter_topic;
  }
  absl::Status written = WriteWith(producer, topic, work, letters);
  if (!written.ok()) {
    // What it still has of this shard is not to be the next one's; and some errors are for good.
    MutexLock lock(&mutex_);
    sources_.at(work.dataset_name).producer.reset();
  }
  return written;
}

absl::Status TopicReader::WriteWith(kafka::Producer* producer, const std::string& topic,
                                    const ShardWork& work, std::span<const DeadLetter> letters) {
  for (const DeadLetter& letter : letters) {
    kafka::Producer::Message message{
        .topic = topic, .value = letter.value, .key = {}, .headers = {}, .partition = {}};
    if (letter.has_key) message.key = letter.key;
    message.headers = {{"muster.reason", letter.reason},
                       {"muster.topic", work.stream->topic},
                       {"muster.partition", fmt::format("{}", work.stream->partition.value())},
                       {"muster.offset", fmt::format("{}", letter.offset)}};
    MUSTER_RETURN_IF_ERROR(producer->Send(message));
  }
  return producer->Flush(kDeadLetterTimeout);
}

std::string TopicReader::LocationOf(const ShardWork& work, const ShardRecords& records,
                                    size_t position) {
  return fmt::format("{}[{}]@{}", work.stream->topic, work.stream->partition.value(),
                     records.topic->all()[position].offset);
}

}  // namespace muster::sdk
