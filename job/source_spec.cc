#include "job/source_spec.h"

#include <fmt/format.h>

#include "absl/time/time.h"

namespace muster {
namespace {

using Fields = std::vector<std::pair<std::string, std::string>>;

// The fingerprint checks the contents of the files. Their places may change.
Fields FixedFieldsOf(const LinesSpec&) {
  return {};
}
Fields FixedFieldsOf(const TopicSpec& topic) {
  return {{"kafka.topic", topic.topic},
          {"kafka.start", ToString(topic.start)},
          {"kafka.end", ToString(topic.end)}};
}
Fields FixedFieldsOf(const RangeSpec& range) {
  return {{"records", fmt::format("{}", range.records)}};
}

}  // namespace

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

bool HasHeader(const SourceSpec& source) {
  const auto* lines = std::get_if<LinesSpec>(&source);
  return lines != nullptr && lines->header;
}

Fields FixedFields(const SourceSpec& source) {
  return std::visit([](const auto& one) { return FixedFieldsOf(one); }, source);
}

}  // namespace muster
