#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>

#include "base/clock.h"
#include "host/resources.h"
#include "scaler/model/model.h"

namespace muster::scaler {

/// The usage of processes that no host of nodes has started: the job's own master and scaler, and
/// nodes that another machine runs (`muster join`).
/// Pure; not thread-safe.
class ProcessMeter {
 public:
  /// `window`: the processors in use are the mean over it.
  explicit ProcessMeter(std::chrono::seconds window) : window_(window) {}

  /// If the pid is another one, the measurement of the process starts over.
  void OnReading(const std::string& name, uint64_t pid, const NodeUsage& usage, TimePoint now);
  /// It cannot be measured any more.
  void Forget(const std::string& name) { processes_.erase(name); }
  /// Nothing: not measured, or another process than `pid` was.
  std::optional<rest::Usage> UsageOf(const std::string& name, uint64_t pid) const;

 private:
  struct Process {
    uint64_t pid = 0;
    NodeUsage newest;
    /// Readings of the processor time within the window, and one from before it.
    std::deque<std::pair<TimePoint, std::chrono::microseconds>> cpu;
  };

  std::chrono::seconds window_;
  std::map<std::string, Process> processes_;
};

}  // namespace muster::scaler
