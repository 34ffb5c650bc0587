#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "proto/status/job_status.h"

namespace muster {

/// Measures records per second over the last few seconds. A value.
class RateMeter {
 public:
  /// `count` may fall because of a replay. The rate is then 0 until it grows again.
  void Add(TimePoint now, uint64_t count);
  /// The rate over at most the last kWindow. 0 before there are two readings.
  double PerSecond() const;
  static constexpr std::chrono::seconds kWindow{10};

 private:
  std::deque<std::pair<TimePoint, uint64_t>> readings_;
};

/// What the display shows in addition to the master's status.
struct ProgressInput {
  std::optional<JobStatus> status;  // the newest one; none before the master answered
  std::chrono::milliseconds elapsed{0};
  double records_per_second = 0;
  uint32_t servers_running = 0, servers_wanted = 0;
  uint32_t workers_running = 0, workers_wanted = 0;
  uint32_t master_restarts = 0, scaler_restarts = 0, server_restarts = 0, worker_restarts = 0;
  bool master_silent = false;
  std::string waiting_for;  // the last line of the master's log while it starts
  std::string last_event;
};

/// The numbers of records expected and done, over all datasets and epochs.
struct Totals {
  uint64_t expected = 0;
  uint64_t done = 0;
};
Totals TotalsOf(const JobStatus& status);

/// Says which nodes the cluster has no place for, and why, servers first. Nodes with the same
/// reason share a line. Pure.
std::vector<std::string> WaitsOf(const std::vector<const NodeStatus*>& nodes);
/// Sentences that say why the job makes no progress and what it waits for: its reason, nodes
/// without a place, topics that cannot be read, and topics to which rejected records cannot be
/// written. Pure.
std::vector<std::string> TroublesOf(const JobStatus& status);

/// The lines of the block that is redrawn in place on a terminal. None is wider than `columns`.
/// Pure.
std::vector<std::string> ProgressBlock(const ProgressInput& input, size_t columns);
/// The same in one line, for pipes and files. Pure.
std::string ProgressLine(const ProgressInput& input);

/// "1:02:03", "2:03", "0:07".
std::string DurationText(std::chrono::milliseconds duration);
/// "12,345 records/s".
std::string RateText(double records_per_second);
/// "1:23 left", or "- left" if it is not known.
std::string RemainingText(std::optional<double> seconds);
/// "0.35 s".
std::string MillisecondsText(uint64_t milliseconds);

/// Shows progress: as a block in place on a terminal, as a line every few seconds elsewhere, or not
/// at all if it is off. Not thread-safe.
class ProgressDisplay {
 public:
  enum class Mode : uint8_t { kOff, kLines, kBlock };
  /// kBlock if `fd` is a terminal, NO_COLOR is not set, and TERM is not dumb.
  static Mode ModeOf(int fd);

  ProgressDisplay(Mode mode, int fd) : mode_(mode), fd_(fd) {}
  ~ProgressDisplay() { Clear(); }

  Mode mode() const { return mode_; }
  /// Draws if it is time to do so.
  void Draw(const ProgressInput& input, TimePoint now);
  /// Writes a line above the block, in every mode except kOff.
  void Print(const std::string& line);
  /// The same in every mode, for an answer to something that the user has just asked for.
  void Answer(const std::string& line);
  /// Removes the block, so that others can write.
  void Clear();

 private:
  void Write(const std::string& text);
  Mode mode_;
  int fd_;
  size_t lines_drawn_ = 0;
  std::vector<std::string> block_;
  std::optional<TimePoint> drawn_at_;
};

}  // namespace muster
