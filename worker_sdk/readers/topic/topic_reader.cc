#include "worker_sdk/readers/topic/topic_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

#include "base/clock.h"
#include "base/status.h"
#include "base/text.h"
#include "base/words/parts.h"

namespace muster::sdk {
namespace {

constexpr std::chrono::milliseconds kDeadLetterTimeout{30'000};
constexpr std::chrono::milliseconds kDeadLetterLook{50};
/// The ranges of a shard are announced while those before are read, so that each fetch has many.
constexpr size_t kAnnounceEvery = 16;

kafka::ClientConfig ConfigOf(const TopicSource& topic) {
  return {topic.brokers, topic.properties, topic.secrets};
}

/// A retry cannot fix wrong settings.
absl::Status AsSettings(const absl::Status& status, const TopicSource& topic) {
  return absl::FailedPreconditionError(
      fmt::format("dataset '{}': {}", topic.dataset, Message(status)));
}

}  // namespace

std::vector<size_t> CutByOffset(uint64_t offsets, uint32_t minibatches,
                                std::span<const uint64_t> positions) {
  std::vector<size_t> begins;
  begins.reserve(size_t{minibatches} + 1);
  auto at = positions.begin();
  for (uint32_t k = 0; k < minibatches; ++k) {
    at = std::lower_bound(at, positions.end(), BeginOfPart(k, minibatches, offsets));
    begins.push_back(static_cast<size_t>(at - positions.begin()));
  }
  begins.push_back(positions.size());
  return begins;
}

TopicReader::TopicReader(std::vector<TopicSource> topics) {
  MutexLock lock(&mutex_);
  for (TopicSource& topic : topics) {
    const std::string dataset = topic.dataset;
    sources_.try_emplace(dataset, Source{std::move(topic), nullptr, "", nullptr});
  }
}

TopicReader::~TopicReader() = default;

absl::StatusOr<std::shared_ptr<kafka::RangeReader>> TopicReader::ReaderFor(
    const TopicSource& source, const std::string& topic) const {
  const kafka::ClientConfig config = ConfigOf(source);
  std::map<kafka::RangeReader*, std::pair<std::shared_ptr<kafka::RangeReader>, bool>> readers;
  for (const auto& [dataset, other] : sources_) {
    if (other.reader == nullptr || ConfigOf(other.topic) != config) continue;
    auto& [reader, has_topic] = readers[other.reader.get()];
    reader = other.reader;
    has_topic = has_topic || other.topic_name == topic;
  }
  for (auto& [pointer, entry] : readers) {
    if (!entry.second) return entry.first;
  }
  auto reader = kafka::RangeReader::Open(config);
  if (!reader.ok()) return AsSettings(reader.status(), source);
  return *std::move(reader);
}

absl::StatusOr<TopicReader::Place> TopicReader::PlaceOf(const ShardWork& work) {
  MutexLock lock(&mutex_);
  const auto it = sources_.find(work.dataset_name);
  if (it == sources_.end()) {
    return absl::InternalError(fmt::format(
        "the master did not say where the topic of dataset '{}' is", work.dataset_name));
  }
  Source& source = it->second;
  if (source.reader == nullptr) {
    MUSTER_ASSIGN_OR_RETURN(source.reader, ReaderFor(source.topic, work.stream->topic));
    source.topic_name = work.stream->topic;
  }
  Place place{source.reader.get(), {}};
  for (const OffsetRange& range : work.stream->ranges) {
    place.ranges.push_back({.topic = work.stream->topic,
                            .partition = range.partition.value(),
                            .begin = range.begin,
                            .end = range.end,
                            .record_bytes_max = source.topic.record_bytes_max});
  }
  return place;
}

void TopicReader::Expect(std::span<const ShardWork> works) {
  std::map<kafka::RangeReader*, std::vector<kafka::RangeReader::Range>> ranges;
  for (const ShardWork& work : works) {
    absl::StatusOr<Place> place = PlaceOf(work);
    if (!place.ok()) continue;
    std::ranges::move(place->ranges, std::back_inserter(ranges[place->reader]));
  }
  for (const auto& [reader, expected] : ranges) reader->Expect(expected);
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
  const kafka::Record& record = writing.records.topic->At(rejected.position);
  const TopicPartition partition = writing.records.topic->PartitionOf(rejected.position);
  kafka::Producer::Message message{
      .topic = writing.topic, .value = {}, .key = {}, .headers = {}, .partition = {}};
  if (record.has_value && with_value) message.value = record.value;
  message.key = record.key;
  message.headers = {{"muster.reason", rejected.reason},
                     {"muster.topic", writing.work.stream->topic},
                     {"muster.partition", fmt::format("{}", partition.value())},
                     {"muster.offset", fmt::format("{}", record.offset)}};
  if (!with_value)
    message.headers.emplace_back("muster.bytes", fmt::format("{}", record.value.size()));
  return message;
}

absl::StatusOr<ShardRecords> TopicReader::Read(const ShardWork& work,
                                               const KeepWaiting& keep_waiting) {
  MUSTER_ASSIGN_OR_RETURN(const Place place, PlaceOf(work));
  ShardRecords result;
  result.topic = std::make_unique<TopicRecords>();
  std::vector<uint64_t> positions;
  uint64_t first = 0;  // position of the range's first offset
  for (size_t i = 0; i < place.ranges.size(); ++i) {
    const kafka::RangeReader::Range& range = place.ranges[i];
    if (i % kAnnounceEvery == 0) {
      const size_t soon = std::min(place.ranges.size() - i, 2 * kAnnounceEvery);
      place.reader->Expect(std::span(place.ranges).subspan(i, soon));
    }
    absl::StatusOr<std::unique_ptr<kafka::Records>> read = place.reader->Read(range, keep_waiting);
    // The records are too large for the job's limit on every worker. So it is not this process that
    // lacks something.
    if (absl::IsResourceExhausted(read.status())) {
      return absl::InvalidArgumentError(read.status().message());
    }
    MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<kafka::Records> records, std::move(read));
    for (const kafka::Record& record : records->all()) {
      result.records.push_back(record.value);
      positions.push_back(first + (record.offset - range.begin));
    }
    first += range.end - range.begin;
    result.topic->Add(TopicPartition(range.partition), std::move(records));
  }
  result.minibatches = CutByOffset(first, work.minibatch_count, positions);
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
  const OffsetRange& first = work.stream->ranges.front();
  const std::string name = fmt::format("offsets [{}, {}) of topic {}[{}]", first.begin, first.end,
                                       work.stream->topic, first.partition.value());
  const size_t others = work.stream->ranges.size() - 1;
  return others == 0 ? name : fmt::format("{} and {}", name, CountText(others, "more range"));
}

std::string TopicReader::LocationOf(const ShardWork& work, const ShardRecords& records,
                                    size_t position) const {
  return fmt::format("{}[{}]@{}", work.stream->topic, records.topic->PartitionOf(position).value(),
                     records.topic->At(position).offset);
}

}  // namespace muster::sdk
