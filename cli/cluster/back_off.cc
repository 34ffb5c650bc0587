#include "cli/cluster/back_off.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/backoff.h"
#include "base/clock.h"
#include "kubernetes/model/json_access.h"
#include "kubernetes/model/timestamp.h"

namespace muster::cluster {
namespace {

using kubernetes::ElementsAt;
using kubernetes::TextAt;
using nlohmann::json;

constexpr std::chrono::seconds kFirstWait{10};
constexpr std::chrono::seconds kWaitMax{600};

/// When the pod's last container ended; else when Kubernetes noted that the pod is not ready. As
/// Kubernetes writes times, which sort as texts.
std::string EndOf(const json& pod) {
  std::string end;
  for (const json& status : ElementsAt(pod, {"status", "containerStatuses"})) {
    end = std::max(end, TextAt(status, {"state", "terminated", "finishedAt"}));
  }
  if (!end.empty()) return end;
  for (const json& condition : ElementsAt(pod, {"status", "conditions"})) {
    if (TextAt(condition, {"type"}) == "Ready") end = TextAt(condition, {"lastTransitionTime"});
  }
  return end;
}

}  // namespace

std::chrono::seconds BackOffAfter(int64_t deaths) {
  const auto failures = static_cast<uint32_t>(std::clamp<int64_t>(deaths, 0, UINT32_MAX));
  return std::chrono::duration_cast<std::chrono::seconds>(
      PauseAfter(failures, {.first = kFirstWait, .longest = kWaitMax}));
}

std::string NextStart(const json& job, const std::vector<json>& pods) {
  std::string end;
  for (const json& pod : pods) end = std::max(end, EndOf(pod));
  const auto uncounted =
      static_cast<int64_t>(ElementsAt(job, {"status", "uncountedTerminatedPods", "failed"}).size());
  const int64_t counted = kubernetes::IntegerAt(job, {"status", "failed"}, 0);
  const int64_t deaths = std::max<int64_t>(1, counted + uncounted);
  const std::chrono::seconds wait = BackOffAfter(deaths);
  const std::string why = fmt::format(
      "after {} of its pods it waits {} s",
      deaths == 1 ? "the end of one" : fmt::format("the ends of {}", deaths), wait.count());
  const std::optional<WallTime> ended = kubernetes::ParseTimestamp(end);
  if (!ended) return fmt::format("Kubernetes starts the next one soon: {}", why);
  const auto next = std::chrono::duration_cast<std::chrono::seconds>(*ended + wait);
  return fmt::format("Kubernetes starts the next one at about {:%Y-%m-%dT%H:%M:%S}Z: {}",
                     fmt::gmtime(static_cast<std::time_t>(next.count())), why);
}

}  // namespace muster::cluster
