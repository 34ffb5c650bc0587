#include "kubernetes/pods/pod_usage.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "kubernetes/model/json_access.h"
#include "kubernetes/pods/quantity.h"

namespace muster::kubernetes {
namespace {

/// A rate counts for so long; then nothing is known.
constexpr std::chrono::seconds kRateLength{60};

}  // namespace

std::chrono::microseconds PodUsage::Container::CpuAt(TimePoint now) const {
  const std::chrono::duration<double, std::micro> since_rate =
      std::min<std::chrono::nanoseconds>(now - since, kRateLength);
  return std::chrono::microseconds(static_cast<int64_t>(cpu_us + cores * since_rate.count()));
}

void PodUsage::OnMetrics(const nlohmann::json& items, TimePoint now) {
  std::map<std::pair<std::string, std::string>, Container> next;
  for (const nlohmann::json& item : items) {
    const std::string pod = TextAt(item, {"metadata", "name"});
    for (const nlohmann::json& one : ElementsAt(item, {"containers"})) {
      const std::pair<std::string, std::string> key{pod, TextAt(one, {"name"})};
      Container container = containers_[key];
      const nlohmann::json& usage = ValueAt(one, {"usage"});
      container.cpu_us = static_cast<double>(container.CpuAt(now).count());
      container.cores = ParseQuantity(TextAt(usage, {"cpu"})).value_or(0);
      container.since = now;
      container.memory_bytes = ReadResources(usage).memory_bytes;
      container.memory_peak_bytes = std::max(container.memory_peak_bytes, container.memory_bytes);
      next.emplace(key, container);
    }
  }
  containers_ = std::move(next);
}

absl::StatusOr<NodeUsage> PodUsage::Of(const std::string& pod, const std::string& container,
                                       TimePoint now) const {
  const auto found = containers_.find({pod, container});
  if (found == containers_.end() || now - found->second.since > kRateLength) {
    return absl::UnavailableError(fmt::format("the cluster has no figures of the pod {} now", pod));
  }
  return NodeUsage{.cpu = found->second.CpuAt(now),
                   .memory_bytes = found->second.memory_bytes,
                   .memory_peak_bytes = found->second.memory_peak_bytes};
}

}  // namespace muster::kubernetes
