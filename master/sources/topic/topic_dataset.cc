#include "master/sources/topic/topic_dataset.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <utility>
#include <variant>

#include "base/status.h"
#include "master/sources/topic/topic_follower.h"

namespace muster {
namespace {

/// A follower that waits for its brokers cannot be stopped earlier.
constexpr std::chrono::milliseconds kTopicTimeout{2'000};

}  // namespace

TopicDataset::TopicDataset(const JobSpec& job, DatasetId dataset)
    : id_(dataset),
      dataset_(job.datasets[dataset.value()]),
      topic_(std::get<TopicSpec>(dataset_.source)),
      group_(GroupOf(job)) {}

kafka::ClientConfig TopicDataset::ClientConfig() const {
  return {topic_.brokers, topic_.properties, topic_.secrets};
}

absl::Status TopicDataset::CheckSettings() const {
  return kafka::CheckConfig(ClientConfig());
}

absl::StatusOr<SourcePreview> TopicDataset::Preview() const {
  SourcePreview preview{.name = dataset_.name, .how = ToString(dataset_.mode)};
  const std::string start = ToString(topic_.start), end = ToString(topic_.end);
  preview.what = fmt::format("topic {} on {}, from {} to {}", topic_.topic,
                             fmt::join(topic_.brokers, ","), start, end);
  preview.facts = {{"mode", preview.how},
                   {"topic", topic_.topic},
                   {"brokers", topic_.brokers},
                   {"start", start},
                   {"end", end}};
  return preview;
}

std::optional<StreamPlan> TopicDataset::Growth() const {
  return StreamPlan{.topic = topic_.topic,
                    .cut = {.minibatch_size = dataset_.minibatch_size,
                            .minibatches_per_shard = dataset_.minibatches_per_shard,
                            .max_delay = topic_.max_delay},
                    .open_ranges_max = topic_.open_ranges_max};
}

void TopicDataset::Introduce(HelloResponse* hello) const {
  hello->topics.push_back({.dataset = dataset_.name,
                           .brokers = topic_.brokers,
                           .properties = topic_.properties,
                           .secrets = topic_.secrets,
                           .group = group_,
                           .record_bytes_max = topic_.record_bytes_max,
                           .dead_letter_topic = topic_.dead_letter_topic});
}

absl::StatusOr<std::unique_ptr<SourceFollower>> TopicDataset::Follow(FollowOptions options) const {
  MUSTER_ASSIGN_OR_RETURN(
      std::unique_ptr<kafka::Topic> topic,
      kafka::Topic::Open(ClientConfig(),
                         {.topic = topic_.topic, .group = group_, .timeout = kTopicTimeout}));
  return std::make_unique<TopicFollower>(
      TopicFollower::Options{
          .dataset = id_, .name = dataset_.name, .spec = topic_, .group = group_},
      std::move(topic), std::move(options));
}

}  // namespace muster
