// The calls about a minibatch's records: metrics, rejected records, a topic's fields.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "worker_sdk/session/minibatch_impl.h"
#include "worker_sdk/session/minibatch_loop.h"

namespace muster::internal {
namespace {

// The master's limits for one shard.
constexpr size_t kMetricNamesMax = 256;
constexpr size_t kMetricNameBytesMax = 256;
constexpr size_t kSampleBytesMax = 1000;

/// kAborted if the trainer was interrupted: then the shard is not to blame.
absl::StatusOr<std::string> ToObject(Result<std::string> joined) {
  if (joined.ok()) return std::move(*joined);
  return absl::Status(joined.status().code() == Status::Code::kInterrupted
                          ? absl::StatusCode::kAborted
                          : absl::StatusCode::kInvalidArgument,
                      joined.status().message());
}

}  // namespace

std::span<const int64_t> MinibatchImpl::record_numbers() const {
  const std::vector<int64_t>& numbers = loop_->records().numbers;
  if (numbers.empty()) return {};
  return std::span(numbers).subspan(first_record_, records_.size());
}

std::shared_ptr<const void> MinibatchImpl::records_owner() const {
  return loop_->shared_records();
}

size_t MinibatchImpl::nominal_size() const {
  return loop_->work().minibatch_size;
}

bool MinibatchImpl::MetricAllowed(std::string_view name, MetricKind kind) {
  const ShardMetrics& metrics = loop_->metrics();
  const std::string key(name);
  const bool is_mean = metrics.means.contains(key), is_auc = metrics.aucs.contains(key);
  if (kind == MetricKind::kMean ? is_auc : is_mean) {
    session_->ProgramError(
        fmt::format("metric \"{}\" is given to both Metric and Auc: name them differently", name));
    return false;
  }
  if (!name.empty() && name.size() <= kMetricNameBytesMax &&
      (is_mean || is_auc || metrics.means.size() + metrics.aucs.size() < kMetricNamesMax)) {
    return true;
  }
  session_->ProgramError(
      fmt::format("metric \"{}\": a name has 1 to {} bytes, and a shard up to {} "
                  "metrics",
                  name.substr(0, 100), kMetricNameBytesMax, kMetricNamesMax));
  return false;
}

void MinibatchImpl::Metric(std::string_view name, double value, double weight) {
  if (!MetricAllowed(name, MetricKind::kMean)) return;
  if (!std::isfinite(value) || !std::isfinite(weight) || weight < 0) {
    return loop_->Fail(
        fmt::format("metric \"{}\" is {} with weight {} in minibatch {} of the shard", name, value,
                    weight, index_.value()));
  }
  WeightedMean& mean = loop_->metrics().means[std::string(name)];
  mean.sum += value * weight;
  mean.weight += weight;
}

void MinibatchImpl::Auc(std::string_view name, ScoreKind kind, std::span<const float> scores,
                        std::span<const uint8_t> labels) {
  if (!MetricAllowed(name, MetricKind::kAuc)) return;
  if (scores.size() != labels.size()) {
    return session_->ProgramError(
        fmt::format("metric \"{}\": {} scores and {} labels", name, scores.size(), labels.size()));
  }
  const auto bad = std::ranges::find_if_not(scores, [kind](float score) {
    return kind == ScoreKind::kLogit ? std::isfinite(score) : score >= 0 && score <= 1;
  });  // NaN is neither
  if (bad != scores.end()) {
    return loop_->Fail(fmt::format(
        "metric \"{}\": score {} of minibatch {} of the shard is {}; {}: look for {}a division by "
        "zero",
        name, bad - scores.begin(), index_.value(), *bad,
        kind == ScoreKind::kLogit ? "a logit is a finite number" : "a score is a number in [0, 1]",
        kind == ScoreKind::kLogit ? "" : "a missing sigmoid, or "));
  }
  ScoreHistogram& histogram = loop_->metrics().aucs[std::string(name)];
  for (size_t i = 0; i < scores.size(); ++i) {
    (kind == ScoreKind::kLogit ? AddLogit : AddScore)(&histogram, scores[i], labels[i] != 0);
  }
}

const sdk::TopicRecords* MinibatchImpl::TopicOf(size_t record, std::string_view call) {
  const sdk::TopicRecords* topic = loop_->topic();
  if (topic != nullptr && record < records_.size()) return topic;
  session_->ProgramError(
      topic == nullptr
          ? fmt::format("{} in dataset '{}', which is no topic", call, loop_->work().dataset_name)
          : fmt::format("{} of record {} of a minibatch of {}", call, record, records_.size()));
  return nullptr;
}

sdk::PooledVector<std::chrono::milliseconds> MinibatchImpl::Timestamps() const {
  sdk::PooledVector<std::chrono::milliseconds> timestamps;
  const sdk::TopicRecords* topic = loop_->topic();
  if (topic == nullptr) return timestamps;
  for (size_t i = 0; i < records_.size(); ++i) {
    const std::chrono::milliseconds timestamp = topic->At(first_record_ + i).timestamp;
    if (timestamp.count() > 0) timestamps.push_back(timestamp);
  }
  return timestamps;
}

TopicRecord MinibatchImpl::RecordOfTopic(size_t record) {
  const sdk::TopicRecords* topic = TopicOf(record, "topic_record");
  if (topic == nullptr) return {};
  const kafka::Record& from = topic->At(first_record_ + record);
  return {from.key, !from.has_value, from.timestamp.count(),
          topic->PartitionOf(first_record_ + record).value(), from.offset};
}

std::vector<TopicHeader> MinibatchImpl::HeadersOfTopic(size_t record) {
  std::vector<TopicHeader> headers;
  const sdk::TopicRecords* topic = TopicOf(record, "topic_headers");
  if (topic == nullptr) return headers;
  for (const auto& [name, value] : topic->HeadersOf(first_record_ + record)) {
    headers.push_back({name, value});
  }
  return headers;
}

sdk::ShardOutput* MinibatchImpl::OutputAllowed() {
  std::string why;
  if (!loop_->predict()) {
    why = fmt::format("Output in dataset \"{}\": only datasets of mode predict have outputs",
                      loop_->work().dataset_name);
  } else if (committed_) {
    why = "Output after Commit of the minibatch: call it before";
  } else if (preparing_) {
    why = "Output in `prepare`: call it in the loop, so that outputs stay in the order of records";
  }
  if (why.empty()) return &loop_->output();
  session_->ProgramError(std::move(why));
  return nullptr;
}

void MinibatchImpl::Output(std::string_view bytes) {
  sdk::ShardOutput* const output = OutputAllowed();
  if (output == nullptr) return;
  if (const auto wrong = output->AddBytes(bytes)) loop_->Fail("Output: " + *wrong);
}

void MinibatchImpl::Output(std::span<const float> values, size_t columns) {
  sdk::ShardOutput* const output = OutputAllowed();
  if (output == nullptr) return;
  if (const auto wrong = output->AddRows(values, columns)) loop_->Fail("Output: " + *wrong);
}

void MinibatchImpl::Output(std::string_view piece, const ObjectFormat& format) {
  sdk::ShardOutput* const output = OutputAllowed();
  if (output == nullptr) return;
  sdk::ObjectFormat own{.suffix = format.suffix, .join = {}};
  if (format.join) {
    own.join = [join = format.join](std::span<const std::string_view> pieces) {
      return ToObject(join(pieces));
    };
  }
  if (const auto wrong = output->AddPiece(piece, own)) loop_->Fail("Output: " + *wrong);
}

void MinibatchImpl::Reject(size_t record, std::string_view reason) {
  if (record >= records_.size()) {
    return session_->ProgramError(
        fmt::format("Reject of record {} of a minibatch of {}", record, records_.size()));
  }
  if (!rejected_.insert(record).second) return;
  loop_->AddRejected(first_record_ + record, reason);
  ShardMetrics& metrics = loop_->metrics();
  ++metrics.rejected_records;
  if (metrics.reject_samples.size() >= ShardMetrics::kRejectSamplesMax) return;
  std::string sample = fmt::format("{}: {}", loop_->LocationOf(first_record_ + record), reason);
  if (sample.size() > kSampleBytesMax) sample.resize(kSampleBytesMax);
  metrics.reject_samples.push_back(std::move(sample));
}

}  // namespace muster::internal
