#include "sharding/stream/stream_bounds.h"

#include <fmt/format.h>

#include "base/status.h"

namespace muster {
namespace {

using Kind = StreamBound::Kind;

/// Producers' clocks differ, records are late, and a transaction holds back later records, by
/// default for at most a minute. So an end that is a time is reached only this long after the time.
constexpr std::chrono::seconds kTimeSlack{75};

/// The offsets must name every existing partition, and no other.
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

/// The offsets must lie within the logs. Otherwise, some records would silently never be read.
absl::Status CheckReached(const StreamBounds& bounds, std::span<const StreamLog> logs) {
  for (const StreamLog& log : logs) {
    const uint32_t partition = log.partition.value();
    if (bounds.start.kind == Kind::kOffsets && bounds.start.offsets.at(partition) > log.end) {
      return absl::OutOfRangeError(fmt::format(
          "kafka.start names offset {} of partition {}, whose log ends at offset {}: name one that "
          "is not beyond it",
          bounds.start.offsets.at(partition), partition, log.end));
    }
    const uint64_t begin = BeginOf(bounds.start, log).value_or(log.begin);
    if (bounds.end.kind == Kind::kOffsets && bounds.end.offsets.at(partition) < begin) {
      return absl::FailedPreconditionError(
          fmt::format("kafka.end names offset {} of partition {}, where the dataset begins at "
                      "offset {}: name one that is not before it",
                      bounds.end.offsets.at(partition), partition, begin));
    }
  }
  return absl::OkStatus();
}

/// A partition that was added after the first look has no offset in the job file.
absl::Status CheckAdded(const StreamBounds& bounds, std::span<const StreamLog> logs) {
  if (bounds.end.kind != Kind::kOffsets || bounds.over) return absl::OkStatus();
  for (const StreamLog& log : logs) {
    if (bounds.known.contains(log.partition)) continue;
    return absl::FailedPreconditionError(fmt::format(
        "the topic was given a partition {}, for which kafka.end names no offset. So it is "
        "not known whether its records belong to the dataset. Begin a new job in another "
        "spec.stateDirectory, and name an offset for each",
        log.partition.value()));
  }
  return absl::OkStatus();
}

std::optional<uint64_t> EndOf(const StreamBounds& bounds, const StreamLog& log, bool first_look) {
  switch (bounds.end.kind) {
    case Kind::kNow:
      return first_look ? log.end : log.begin;
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

absl::StatusOr<std::vector<PartitionLook>> ResolveStamps(const StreamBounds& bounds,
                                                         std::span<const StreamLog> logs) {
  const bool first_look = bounds.known.empty();
  if (first_look) {
    MUSTER_RETURN_IF_ERROR(CheckNamed(bounds.start, "start", logs));
    MUSTER_RETURN_IF_ERROR(CheckNamed(bounds.end, "end", logs));
    MUSTER_RETURN_IF_ERROR(CheckReached(bounds, logs));
  } else {
    MUSTER_RETURN_IF_ERROR(CheckAdded(bounds, logs));
  }
  std::vector<PartitionLook> looks;
  for (const StreamLog& log : logs) {
    PartitionLook look{.partition = log.partition,
                       .log_begin = log.begin,
                       .stable_end = log.stable_end,
                       .begin = {},
                       .end = {},
                       .log_end = log.end};
    const bool known = bounds.known.contains(log.partition);
    if (first_look) look.begin = BeginOf(bounds.start, log);
    if (!known || bounds.end.kind == Kind::kTime) look.end = EndOf(bounds, log, first_look);
    looks.push_back(look);
  }
  return looks;
}

}  // namespace muster
