#include "sharding/stream/stream_bounds.h"

#include <fmt/format.h>

#include "base/status.h"

namespace muster {
namespace {

using Kind = StreamBound::Kind;

/// Producers' clocks differ, records are late, and a transaction holds back what comes after it, by
/// default for a minute at most: so long after the time itself its end is there.
constexpr std::chrono::seconds kTimeSlack{75};

absl::Status CheckNamed(const StreamBound& bound, std::string_view field,
                        std::span<const StreamLog> logs) {
  if (bound.kind != Kind::kOffsets) return absl::OkStatus();
  std::set<uint32_t> there;
  for (const StreamLog& log : logs) {
    there.insert(log.partition.value());
    if (bound.offsets.contains(log.partition.value())) continue;
    return absl::FailedPreconditionError(fmt::format(
        "the topic has a partition {}, for which kafka.{} names no offset: name one for each",
        log.partition.value(), field));
  }
  for (const auto& [partition, offset] : bound.offsets) {
    if (there.contains(partition)) continue;
    return absl::FailedPreconditionError(
        fmt::format("kafka.{} names an offset for partition {}, and the topic has {} partitions",
                    field, partition, logs.size()));
  }
  return absl::OkStatus();
}

std::optional<uint64_t> BeginOf(const StreamBound& start, const StreamLog& log) {
  switch (start.kind) {
    case Kind::kLatest:
      return log.stable_end;
    case Kind::kTime:
      return log.at_start_time.value_or(log.stable_end);
    case Kind::kOffsets:
      return start.offsets.at(log.partition.value());
    default:
      return std::nullopt;
  }
}

std::optional<uint64_t> EndOf(const StreamBounds& bounds, const StreamLog& log, bool first_look) {
  switch (bounds.end.kind) {
    case Kind::kNow:
      return first_look ? log.stable_end : log.begin;
    case Kind::kOffsets:
      return first_look ? bounds.end.offsets.at(log.partition.value()) : log.begin;
    case Kind::kTime:
      if (log.at_end_time.has_value()) return log.at_end_time;
      if (!bounds.end_time_asked) return std::nullopt;
      if (bounds.now < bounds.end.time + kTimeSlack) return std::nullopt;
      return log.stable_end;
    default:
      return std::nullopt;
  }
}

}  // namespace

absl::StatusOr<std::vector<StreamSight>> ResolveSights(const StreamBounds& bounds,
                                                       std::span<const StreamLog> logs) {
  const bool first_look = bounds.known.empty();
  if (first_look) {
    MUSTER_RETURN_IF_ERROR(CheckNamed(bounds.start, "start", logs));
    MUSTER_RETURN_IF_ERROR(CheckNamed(bounds.end, "end", logs));
  }
  std::vector<StreamSight> sights;
  for (const StreamLog& log : logs) {
    StreamSight sight{.partition = log.partition,
                      .log_begin = log.begin,
                      .stable_end = log.stable_end,
                      .begin = {},
                      .end = {}};
    const bool known = bounds.known.contains(log.partition);
    if (first_look) sight.begin = BeginOf(bounds.start, log);
    if (!known || bounds.end.kind == Kind::kTime) sight.end = EndOf(bounds, log, first_look);
    sights.push_back(sight);
  }
  return sights;
}

}  // namespace muster
