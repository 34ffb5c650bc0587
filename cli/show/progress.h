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

/// Records per second over the last few seconds. A value.
class RateMeter {
 public:
  /// `count` may fall (a replay); the rate is then 0 until it grows again.
  void Add(TimePoint now, uint64_t count);
  /// Over at most the last kWindow; 0 before there are two readings.
  double PerSecond() const;
  static constexpr std::chrono::seconds kWindow{10};

 private:
  std::deque<std::pair<TimePoint, uint64_t>> readings_;
};

/// What the display shows beside the master's status.
struct ProgressInput {
  std::optional<JobStatus> status;  // the newest; none before the master answered
  std::chrono::milliseconds elapsed{0};
  double records_per_second = 0;
  uint32_t servers_running = 0, servers_wanted = 0;
  uint32_t workers_running = 0, workers_wanted = 0;
  uint32_t master_restarts = 0, scaler_restarts = 0, server_restarts = 0, worker_restarts = 0;
  bool master_silent = false;
  std::string waiting_for;  // the last line of the master's log while it starts
  std::string last_event;
};

/// Records expected and done over all datasets and epochs.
struct Totals {
  uint64_t expected = 0;
  uint64_t done = 0;
};
Totals TotalsOf(const JobStatus& status);

/// For which nodes the job waits because the cluster has no place for them, and why, servers first.
/// Those with the same reason are one line. Pure.
std::vector<std::string> WaitsOf(const std::vector<const NodeStatus*>& nodes);
/// Why the job gets nowhere and what it waits for, as sentences: its reason, nodes without a place,
/// topics that cannot be read, or that rejected records cannot be written to. Pure.
std::vector<std::string> TroublesOf(const JobStatus& status);

/// The block that is redrawn in place on a terminal, one line each, none wider than `columns`.
/// Pure.
std::vector<std::string> ProgressBlock(const ProgressInput& input, size_t columns);
/// The same in one line, for pipes and files. Pure.
std::string ProgressLine(const ProgressInput& input);

/// "1:02:03", "2:03", "0:07".
std::string DurationText(std::chrono::milliseconds duration);
/// "12,345 records/s".
std::string RateText(double records_per_second);
/// "1:23 left"; "- left" when it is not known.
std::string RemainingText(std::optional<double> seconds);
/// "0.35 s".
std::string MillisecondsText(uint64_t milliseconds);

/// Draws progress to a stream: a block in place on a terminal, a line every few seconds elsewhere,
/// nothing when off. Not thread-safe.
class ProgressDisplay {
 public:
  enum class Mode : uint8_t { kOff, kLines, kBlock };
  /// kBlock when `fd` is a terminal and neither NO_COLOR is set nor TERM is dumb.
  static Mode ModeOf(int fd);

  ProgressDisplay(Mode mode, int fd) : mode_(mode), fd_(fd) {}
  ~ProgressDisplay() { Clear(); }

  Mode mode() const { return mode_; }
  /// Draws if it is time to.
  void Draw(const ProgressInput& input, TimePoint now);
  /// Writes a line above the block. Shown in every mode but kOff.
  void Print(const std::string& line);
  /// The same in every mode: what the user has just asked for is answered.
  void Answer(const std::string& line);
  /// Removes the block, so that others may write.
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
