#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "scaler/model/model.h"

/// The form of events on disk: each is a line of JSON (docs/rest.md), in the order of their ids.
namespace muster::scaler {

/// The most bytes of an event as JSON, without the line break that ends it in a file.
constexpr size_t kEventBytesMax = 16 << 10;

/// The file of the newest events, and the file of those before them. When the first file has grown
/// too large, it becomes the second one.
std::string EventFile(const std::string& folder);
std::string OldEventFile(const std::string& folder);

/// Returns `event` as it can be kept: its texts are valid UTF-8, and each part is cut to its share
/// of kEventBytesMax.
rest::Event BoundedEvent(rest::Event event);

/// One line, with its line break.
std::string EventLine(const rest::Event& event);
/// Errors: kDataLoss says what is wrong with the line.
absl::StatusOr<rest::Event> ParseEventLine(std::string_view line);

struct EventFileContents {
  /// Their ids ascend by one. If a line cannot be read, a note stands in its place.
  std::vector<rest::Event> events;
  /// Bytes of the complete lines. If a writer died, the file may end with a line without a line
  /// break. That line is no event, and the next event overwrites it.
  uint64_t bytes = 0;
  /// For the log: which lines of which file.
  std::vector<std::string> damage;
};

/// Reads both files as one sequence, and returns its newest `events_max` events. `bytes` are those
/// of the newest file. Without a file, there are no events. Errors: a file cannot be read, or it is
/// too large for one that we wrote.
absl::StatusOr<EventFileContents> ReadEventFiles(const std::string& folder, size_t events_max);

}  // namespace muster::scaler
