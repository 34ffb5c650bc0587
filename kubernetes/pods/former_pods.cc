#include "kubernetes/pods/former_pods.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "kubernetes/model/labels.h"
#include "kubernetes/model/timestamp.h"
#include "kubernetes/pods/pod_facts.h"

namespace muster::kubernetes {
namespace {

std::optional<WallTime> CreatedAt(const nlohmann::json& pod) {
  return ParseTimestamp(TextAt(pod, {"metadata", "creationTimestamp"}));
}

/// When the newest job pod of the run was made.
std::optional<WallTime> BeginOf(const PodRun& run, const std::vector<nlohmann::json>& pods) {
  std::optional<WallTime> begin;
  for (const nlohmann::json& pod : pods) {
    if (ReadPodFacts(pod).node.empty() && IsOwnedBy(pod, run.run)) {
      begin = std::max(begin, CreatedAt(pod));
    }
  }
  return begin;
}

}  // namespace

Selection PodsOfAllRuns(const PodRun& run) {
  return {.labels = fmt::format("{}={}", kJobLabel, run.job)};
}

FormerPods::Step FormerPods::Look(const std::vector<nlohmann::json>& pods, TimePoint now) {
  Step step;
  const std::optional<WallTime> begin = BeginOf(run_, pods);
  if (!begin.has_value()) return step;
  for (const nlohmann::json& pod : pods) {
    const PodFacts facts = ReadPodFacts(pod);
    // The owner proves nothing, because a pod's Job may have gone before the pod.
    if (!IsNamedAsNode(facts, run_.job) || facts.run == run_.run) continue;
    const std::optional<WallTime> created = CreatedAt(pod);
    if (!created.has_value() || *created > *begin) continue;
    const auto [deleted_at, first] = deleted_at_.emplace(facts.uid, now);
    if (first) step.deletions.push_back(IdentityOf(pod));
    const bool lost = facts.being_deleted && facts.disruption == Disruption::kNodeLost;
    const bool late = now - deleted_at->second >= kGrace + kConfirmMax;
    if (facts.stage != PodFacts::Stage::kEnded && !lost && !late) step.waits.push_back(facts.name);
  }
  return step;
}

}  // namespace muster::kubernetes
