#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "scaler/model/model.h"

/// The form of events on disk: a line of JSON each (docs/rest.md), in the order of their ids.
namespace muster::scaler {

/// As JSON, without the line break that ends it in a file.
constexpr size_t kEventBytesMax = 16 << 10;

/// The newest events, then those before them. The second file is what the first was until it had
/// grown too large.
std::string EventFile(const std::string& folder);
std::string OldEventFile(const std::string& folder);

/// `event` as it can be kept: texts in valid UTF-8, nothing of it longer than its share of
/// kEventBytesMax.
rest::Event BoundedEvent(rest::Event event);

/// One line, with its end.
std::string EventLine(const rest::Event& event);
/// kDataLoss says what is wrong with it.
absl::StatusOr<rest::Event> ParseEventLine(std::string_view line);

struct EventFileContents {
  /// Ids ascend by one. Where a line cannot be read, a note in its place says so.
  std::vector<rest::Event> events;
  /// Bytes of the complete lines. A rest without a line end, which a dead writer left, is no event,
  /// and the next event overwrites it.
  uint64_t bytes = 0;
  /// For the log: which lines of which file.
  std::vector<std::string> damage;
};

/// Both files as one sequence, the newest `events_max` of it; `bytes` are those of the newest
/// file. No file: no events. Errors: a file that cannot be read, or is too large to be ours.
absl::StatusOr<EventFileContents> ReadEventFiles(const std::string& folder, size_t events_max);

}  // namespace muster::scaler
