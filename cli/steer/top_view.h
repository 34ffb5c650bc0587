#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "scaler/model/model.h"

/// The screen of `muster top` as lines of text.
namespace muster::steer {

/// The scaler's answers at one time.
struct TopReading {
  scaler::rest::Job job;
  std::vector<scaler::rest::Node> nodes;
  std::vector<scaler::rest::Event> events;  // some of the newest, oldest first
  TimePoint at;
};

enum class Tone : uint8_t { kPlain, kHeading, kBad, kOld };
/// Plain text in one tone, without control characters.
struct TopLine {
  std::string text;
  Tone tone = Tone::kPlain;
};

struct TopSize {
  size_t columns = 0;  // 0: no limit
  size_t rows = 0;     // 0: no limit
};

/// Takes readings, and returns lines. Pure; a value.
class TopView {
 public:
  /// Rates are over this time.
  static constexpr std::chrono::seconds kWindow{5};

  void Add(TopReading reading);
  /// There was no answer, for the reason `why`. Until the next reading, the shown values are old.
  void SetAway(std::string why) { away_ = std::move(why); }

  /// The job with its metrics, workers, servers, and newest events. Parts without room are counted:
  /// missing lines below the others, missing columns in the heading. `wall` is now.
  std::vector<TopLine> Lines(TimePoint now, WallTime wall, TopSize size) const;

 private:
  /// The process of `node` in the oldest reading of the window, and the seconds since then.
  struct Earlier {
    const scaler::rest::Node* node = nullptr;
    double seconds = 0;
  };
  Earlier Before(const scaler::rest::Node& node) const;
  // The following lines all fit into `columns`.
  TopLine ProgressLine(size_t columns) const;
  std::vector<TopLine> TrendLines(size_t columns) const;
  std::vector<TopLine> JobLines(TimePoint now, WallTime wall, size_t columns) const;
  std::vector<TopLine> WorkerLines(size_t columns) const;
  std::vector<TopLine> ServerLines(size_t columns) const;
  /// The lines of master and scaler.
  std::vector<TopLine> ControlLines(size_t columns) const;
  std::vector<TopLine> EventLines() const;

  std::deque<TopReading> readings_;
  std::string away_;
};

}  // namespace muster::steer
