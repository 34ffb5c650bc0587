#include "job/file/stream_bound.h"

#include <fmt/format.h>

#include <limits>
#include <string>

#include "absl/time/time.h"
#include "base/status.h"
#include "job/file/scalars.h"

namespace muster::job_file {
namespace {

constexpr size_t kPartitionsMax = 10'000;
constexpr uint64_t kOffsetMax = std::numeric_limits<int64_t>::max();

absl::Status Expected(BoundOf which, const YamlNode& node) {
  return absl::InvalidArgumentError(fmt::format(
      "expected {}, a time like 2026-01-31T12:00:00Z, or offsets like {{0: 1000, 1: 2000}}, got {}",
      which == BoundOf::kStart ? "earliest, latest" : "never, now", Describe(node)));
}

absl::StatusOr<StreamBound> ParseOffsets(const YamlNode& node) {
  StreamBound bound{.kind = StreamBound::Kind::kOffsets, .time = {}, .offsets = {}};
  if (node.entries.empty() || node.entries.size() > kPartitionsMax) {
    return absl::InvalidArgumentError(
        fmt::format("{} entries are out of bounds (1 to {})", node.entries.size(), kPartitionsMax));
  }
  for (const auto& [key, value] : node.entries) {
    const absl::StatusOr<uint64_t> partition = ParseWhole(key.text);
    if (!partition.ok() || *partition > std::numeric_limits<int32_t>::max()) {
      return absl::InvalidArgumentError(
          fmt::format("{} is not the number of a partition", Describe(key)));
    }
    const absl::StatusOr<uint64_t> offset =
        value.kind == YamlNode::Kind::kScalar
            ? ParseWhole(value.text)
            : absl::StatusOr<uint64_t>(absl::InvalidArgumentError(""));
    if (!offset.ok() || *offset > kOffsetMax) {
      return absl::InvalidArgumentError(fmt::format("{} is not an offset", Describe(value)));
    }
    if (!bound.offsets.emplace(static_cast<uint32_t>(*partition), *offset).second) {
      return absl::InvalidArgumentError(fmt::format("partition {} is given twice", *partition));
    }
  }
  return bound;
}

}  // namespace

absl::StatusOr<StreamBound> ParseStreamBound(const YamlNode& node, BoundOf which) {
  if (node.kind == YamlNode::Kind::kMap) return ParseOffsets(node);
  if (node.kind != YamlNode::Kind::kScalar) return Expected(which, node);
  using Kind = StreamBound::Kind;
  const auto plain = [](Kind kind) { return StreamBound{.kind = kind, .time = {}, .offsets = {}}; };
  if (which == BoundOf::kStart) {
    if (node.text == "earliest") return plain(Kind::kEarliest);
    if (node.text == "latest") return plain(Kind::kLatest);
  } else {
    if (node.text == "never") return plain(Kind::kNever);
    if (node.text == "now") return plain(Kind::kNow);
  }
  constexpr size_t kTimeBytesMax = 40;
  absl::Time time;
  if (node.text.size() > kTimeBytesMax ||
      !absl::ParseTime(absl::RFC3339_full, node.text, &time, nullptr) || time < absl::UnixEpoch()) {
    return Expected(which, node);
  }
  StreamBound bound = plain(Kind::kTime);
  bound.time = std::chrono::milliseconds(absl::ToUnixMillis(time));
  return bound;
}

}  // namespace muster::job_file
