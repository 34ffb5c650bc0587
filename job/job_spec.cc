#include "job/job_spec.h"

#include <fmt/format.h>

#include "absl/time/time.h"

namespace muster {

std::string ToString(const StreamBound& bound) {
  switch (bound.kind) {
    case StreamBound::Kind::kEarliest:
      return "earliest";
    case StreamBound::Kind::kLatest:
      return "latest";
    case StreamBound::Kind::kNever:
      return "never";
    case StreamBound::Kind::kNow:
      return "now";
    case StreamBound::Kind::kTime:
      return absl::FormatTime("%Y-%m-%d%ET%H:%M:%E3SZ", absl::FromUnixMillis(bound.time.count()),
                              absl::UTCTimeZone());
    case StreamBound::Kind::kOffsets:
      break;
  }
  std::string text;
  for (const auto& [partition, offset] : bound.offsets) {
    text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", partition, offset);
  }
  return "{" + text + "}";
}

std::string GroupOf(const JobSpec& spec) {
  return "muster." + spec.name;
}

std::vector<std::pair<std::string, std::string>> FixedFields(const JobSpec& spec) {
  std::vector<std::pair<std::string, std::string>> fields;
  fields.emplace_back("spec.seed", fmt::format("{}", spec.seed));
  fields.emplace_back("spec.partitions", fmt::format("{}", spec.partitions));
  std::string names;
  for (const DatasetSpec& dataset : spec.datasets) {
    names += (names.empty() ? "" : ", ") + dataset.name;
  }
  fields.emplace_back("spec.datasets", names);
  for (const DatasetSpec& dataset : spec.datasets) {
    const std::string prefix = fmt::format("spec.datasets[{}].", dataset.name);
    fields.emplace_back(prefix + "mode",
                        dataset.mode == DatasetMode::kTrain ? "train" : "evaluate");
    fields.emplace_back(prefix + "header", fmt::format("{}", dataset.header));
    fields.emplace_back(prefix + "minibatchSize", fmt::format("{}", dataset.minibatch_size));
    fields.emplace_back(prefix + "minibatchesPerShard",
                        fmt::format("{}", dataset.minibatches_per_shard));
    fields.emplace_back(prefix + "shuffle", fmt::format("{}", dataset.shuffle));
    if (!dataset.is_stream()) continue;
    fields.emplace_back(prefix + "kafka.topic", dataset.kafka.topic);
    fields.emplace_back(prefix + "kafka.start", ToString(dataset.kafka.start));
    fields.emplace_back(prefix + "kafka.end", ToString(dataset.kafka.end));
  }
  return fields;
}

}  // namespace muster
