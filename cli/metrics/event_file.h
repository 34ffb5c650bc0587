#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// The event files of TensorBoard. A file consists of records. Each record has a length, two
/// checksums, and an `Event` of TensorFlow (tensorflow/core/util/event.proto). Pure.
namespace muster::metrics {

/// A value of a metric at a step.
struct Point {
  std::string tag;
  uint64_t step = 0;
  double wall_seconds = 0;  // since the Unix epoch; 0: not known
  double value = 0;         // files store it as a float
  friend bool operator==(const Point&, const Point&) = default;
};

/// The first record of a file. `writer` says who writes the file.
std::string EncodeHead(std::string_view writer, double wall_seconds);
std::string EncodePoint(const Point& point);

/// The contents of a file up to the first record that is cut off or damaged.
struct EventFile {
  std::string writer;  // empty if there is no first record
  std::vector<Point> points;
  size_t whole_bytes = 0;  // size of all complete records
};
EventFile DecodeEventFile(std::string_view bytes);

}  // namespace muster::metrics
