#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// The event files of TensorBoard: records, each with its length and two checksums, that hold an
/// `Event` of TensorFlow (tensorflow/core/util/event.proto) each. Pure.
namespace muster::metrics {

/// A value of a metric at a step.
struct Point {
  std::string tag;
  uint64_t step = 0;
  double wall_seconds = 0;  // since the Unix epoch; 0: not known
  double value = 0;         // files keep a float of it
  friend bool operator==(const Point&, const Point&) = default;
};

/// The first record of a file. `writer` says whose file it is.
std::string EncodeHead(std::string_view writer, double wall_seconds);
std::string EncodePoint(const Point& point);

/// What a file has, up to the first record that is torn or damaged.
struct EventFile {
  std::string writer;  // empty: there is no first record
  std::vector<Point> points;
  size_t whole_bytes = 0;  // of all records that are whole
};
EventFile DecodeEventFile(std::string_view bytes);

}  // namespace muster::metrics
