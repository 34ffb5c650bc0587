#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "host/resources.h"

namespace muster::kubernetes {

/// What pods use, from the figures of metrics.k8s.io: the memory of some seconds ago, and a rate of
/// CPU. Between two figures the running total of CPU grows with the newest rate, so that it does
/// not jump. Pure; not thread-safe.
class PodUsage {
 public:
  /// A list of PodMetrics. Pods that it lacks are forgotten. The first container of a pod that is
  /// named `container` counts.
  void OnMetrics(const nlohmann::json& items, TimePoint now);
  /// kUnavailable: nothing is known of it.
  absl::StatusOr<NodeUsage> Of(const std::string& pod, const std::string& container,
                               TimePoint now) const;

 private:
  struct Container {
    double cpu_us = 0;
    double cores = 0;
    TimePoint since;
    uint64_t memory_bytes = 0;
    uint64_t memory_peak_bytes = 0;
    std::chrono::microseconds CpuAt(TimePoint now) const;
  };
  /// By pod and container.
  std::map<std::pair<std::string, std::string>, Container> containers_;
};

}  // namespace muster::kubernetes
