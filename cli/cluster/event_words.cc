#include "cli/cluster/event_words.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "job/in_cluster.h"
#include "kubernetes/model/json_access.h"
#include "kubernetes/model/pod_state.h"
#include "kubernetes/model/timestamp.h"

namespace muster::cluster {
namespace {

using kubernetes::TextAt;
using nlohmann::json;

constexpr size_t kWarningBytesMax = 500;
/// Events after which an earlier trouble of the object is over: a pod has its volumes, or a Job has
/// its pod. Other events, such as that one of several volumes is there, do not mean that.
constexpr std::string_view kGetsOn[] = {"Pulling", "Pulled", "Created", "Started",
                                        "SuccessfulCreate"};

/// When the pod got its machine. If it has none, when it was made.
std::string BeginOf(const json& pod) {
  const json& scheduled = kubernetes::ConditionOf(pod, "PodScheduled");
  return scheduled.is_object() ? TextAt(scheduled, {"lastTransitionTime"})
                               : TextAt(pod, {"metadata", "creationTimestamp"});
}

}  // namespace

std::string TimeOf(const json& event) {
  for (std::string time : {TextAt(event, {"series", "lastObservedTime"}),
                           TextAt(event, {"lastTimestamp"}), TextAt(event, {"eventTime"})}) {
    if (!time.empty()) return time;
  }
  return TextAt(event, {"metadata", "creationTimestamp"});
}

std::string NewestWarning(const std::vector<json>& events, std::string_view uid) {
  const json* warning = nullptr;
  std::string got_on;
  for (const json& event : events) {
    if (TextAt(event, {"involvedObject", "uid"}) != uid) continue;
    if (std::ranges::count(kGetsOn, TextAt(event, {"reason"})) != 0) {
      got_on = std::max(got_on, TimeOf(event));
    }
    if (TextAt(event, {"type"}) != "Warning") continue;
    if (warning == nullptr || TimeOf(*warning) <= TimeOf(event)) warning = &event;
  }
  if (warning == nullptr || TimeOf(*warning) < got_on) return "";
  return Excerpt(Printable(TextAt(*warning, {"message"})), kWarningBytesMax);
}

std::string WithAdvice(std::string words, const std::string& job) {
  const InClusterNames names(job);
  for (const char* kind : {"configmap", "secret", "serviceaccount"}) {
    if (words.find(fmt::format("{} \"{}\" not found", kind, names.muster)) == std::string::npos) {
      continue;
    }
    return fmt::format(
        "{}. `muster run JOB.yaml --on kubernetes`, with the job's file, puts back what it has "
        "made",
        words);
  }
  return words;
}

bool StartsFor(const json& pod, WallTime now, std::chrono::seconds length) {
  const kubernetes::PodState state = kubernetes::ReadPodState(pod, "muster");
  if (state.stage != kubernetes::PodStage::kStarting || state.being_deleted) return false;
  const std::optional<WallTime> begin = kubernetes::ParseTimestamp(BeginOf(pod));
  return begin && now - *begin >= length;
}

}  // namespace muster::cluster
