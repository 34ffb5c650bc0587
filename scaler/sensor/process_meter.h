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

/// Measures processes that no host of nodes has started: the job's own master and scaler, and nodes
/// that another machine runs (`muster join`). Pure; not thread-safe.
class ProcessMeter {
 public:
  /// The number of cores in use is the mean over `window`.
  explicit ProcessMeter(std::chrono::seconds window) : window_(window) {}

  /// If the pid changes, the measurement starts again.
  void OnReading(const std::string& name, uint64_t pid, const NodeUsage& usage, TimePoint now);
  /// The process cannot be measured any more.
  void Forget(const std::string& name) { processes_.erase(name); }
  /// None if the process was not measured, or if the measured process is not `pid`.
  std::optional<rest::Usage> UsageOf(const std::string& name, uint64_t pid) const;

 private:
  struct Process {
    uint64_t pid = 0;
    NodeUsage newest;
    /// Readings of the CPU time within the window, and one from before it.
    std::deque<std::pair<TimePoint, std::chrono::microseconds>> cpu;
  };

  std::chrono::seconds window_;
  std::map<std::string, Process> processes_;
};

}  // namespace muster::scaler
