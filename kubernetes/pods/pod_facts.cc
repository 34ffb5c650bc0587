#include "kubernetes/pods/pod_facts.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "base/text.h"
#include "host/exit_note.h"
#include "kubernetes/model/json_access.h"
#include "kubernetes/model/timestamp.h"
#include "kubernetes/pods/pod_body.h"
#include "kubernetes/pods/quantity.h"

namespace muster::kubernetes {
namespace {

using Json = nlohmann::json;

constexpr size_t kWordsBytesMax = 4'000;
constexpr size_t kDisruptionBytesMax = 500;

std::string LabelOf(const Json& pod, std::string_view label) {
  return TextAt(pod, {"metadata", "labels", label});
}

uint32_t StartOf(const Json& pod) {
  const std::string text = LabelOf(pod, kStartLabel);
  uint32_t start = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), start);
  return error == std::errc() && end == text.data() + text.size() ? start : 0;
}

/// Null if the pod has none.
const Json& NodeContainerOf(const Json& pod) {
  static const Json absent;
  const Json& containers = ElementsAt(pod, {"spec", "containers"});
  for (const Json& container : containers) {
    if (TextAt(container, {"name"}) == kNodeContainer) return container;
  }
  return containers.empty() ? absent : containers.front();
}

/// Kubernetes' sentence, or else its word.
std::string WordsOf(const PodState& state) {
  if (state.message.empty()) return state.reason;
  if (state.reason.empty()) return state.message;
  return fmt::format("{}: {}", state.reason, state.message);
}

/// Why Kubernetes removes the pod. PodState prefers the last message of an ended container, which
/// does not say that.
std::string DisruptionWordsOf(const Json& pod, const PodState& state) {
  if (state.failure == PodFailure::kEvicted) return WordsOf(state);
  const Json& target = ConditionOf(pod, "DisruptionTarget");
  if (!target.is_object()) return WordsOf(state);
  return WordsOf({.reason = TextAt(target, {"reason"}),
                  .message = Excerpt(TextAt(target, {"message"}), kDisruptionBytesMax)});
}

void ReadWait(const PodState& state, PodFacts* facts) {
  switch (state.stage) {
    case PodStage::kUnschedulable:
      facts->wait = NodeWait::kUnschedulable;
      break;
    case PodStage::kImageError:
      facts->wait = NodeWait::kImage;
      break;
    case PodStage::kConfigError:
      facts->wait = NodeWait::kConfig;
      break;
    default:
      return;
  }
  facts->wait_reason = WordsOf(state);
}

/// The exit according to the container's status and its note.
NodeExited ReadExit(const Json& end, const PodState& state, const PodFacts& facts) {
  NodeExited exit{.node = facts.node};
  const std::string message = TextAt(end, {"message"});
  if (const absl::StatusOr<NodeExited> note = ParseExitNote(message); note.ok()) {
    exit = *note;
    exit.node = facts.node;
  } else {
    exit.last_words = Excerpt(message, kWordsBytesMax);
    if (state.signal) {
      exit.exit = {.signal = *state.signal};
    } else {
      exit.exit = {.signal = 0, .code = state.exit_code.value_or(0)};
    }
  }
  exit.pid = facts.ran ? kPodProcess : 0;
  if (state.failure == PodFailure::kOutOfMemory) {
    // The kernel may have killed only one of several processes, and the others ended in their own
    // ways.
    exit.exit = {.signal = SIGKILL};
    exit.memory_kill = MemoryKill::kKernel;
  }
  if (facts.ran) return exit;
  exit.exit = {.signal = SIGKILL};
  exit.last_words = WordsOf(state);
  // The node refused the pod (no room, a taint), so another try may find another node.
  exit.not_started = true;
  return exit;
}

}  // namespace

bool IsOwnedBy(const Json& pod, std::string_view uid) {
  return std::ranges::any_of(ElementsAt(pod, {"metadata", "ownerReferences"}),
                             [&](const Json& owner) { return TextAt(owner, {"uid"}) == uid; });
}

PodFacts ReadPodFacts(const Json& pod) {
  const Json& container = NodeContainerOf(pod);
  const PodState state = ReadPodState(pod, TextAt(container, {"name"}));
  PodFacts facts{.name = state.name,
                 .uid = state.uid,
                 .job = LabelOf(pod, kJobLabel),
                 .run = LabelOf(pod, kRunLabel),
                 .node = LabelOf(pod, kNodeLabel),
                 .start = StartOf(pod)};
  facts.owned = !facts.run.empty() && IsOwnedBy(pod, facts.run);
  facts.container = TextAt(container, {"name"});
  facts.limits = ReadResources(ValueAt(container, {"resources", "limits"}));
  facts.requests = ReadResources(ValueAt(container, {"resources", "requests"}));
  const Json& status = ContainerStatusOf(pod, facts.container);
  const Json& present = ValueAt(status, {"resources", "limits"});
  if (present.is_object()) facts.present_limits = ReadResources(present);
  // Null if the container has not ended.
  const Json& end = ValueAt(status, {"state", "terminated"});
  const bool ended = state.stage == PodStage::kSucceeded || state.stage == PodStage::kFailed;
  // If a pod has other containers, it continues when this container ends. But the node has ended.
  const bool container_ended = end.is_object();
  facts.ran = state.stage == PodStage::kRunning || container_ended;
  if (ended || container_ended) {
    facts.stage = PodFacts::Stage::kEnded;
  } else if (facts.ran) {
    facts.stage = PodFacts::Stage::kRunning;
  } else {
    ReadWait(state, &facts);
  }
  facts.being_deleted = state.being_deleted;
  facts.grace =
      std::chrono::seconds(IntegerAt(pod, {"metadata", "deletionGracePeriodSeconds"}, 30));
  facts.disruption = state.disruption;
  if (facts.disruption != Disruption::kNone) {
    facts.disruption_text = DisruptionWordsOf(pod, state);
  }
  facts.resize = state.resize;
  facts.resize_text = TextAt(ConditionOf(pod, "PodResizePending"), {"message"});
  facts.ended_at = ParseTimestamp(TextAt(end, {"finishedAt"}));
  if (facts.stage == PodFacts::Stage::kEnded) facts.exit = ReadExit(end, state, facts);
  return facts;
}

void KeepKnown(const PodFacts& before, PodFacts* now) {
  if (now->disruption == Disruption::kNone) {
    now->disruption = before.disruption;
    now->disruption_text = before.disruption_text;
  }
  if (!now->present_limits) now->present_limits = before.present_limits;
  now->ran |= before.ran;
}

uint64_t MemoryLimitOf(const PodFacts& pod) {
  return pod.present_limits.value_or(pod.limits).memory_bytes;
}

NodeExited ExitOfPod(const PodFacts& pod, bool ordered) {
  NodeExited exit;
  if (pod.stage == PodFacts::Stage::kEnded) {
    exit = pod.exit;
  } else {
    exit = {.node = pod.node, .pid = pod.ran ? kPodProcess : 0, .exit = {.signal = SIGKILL}};
  }
  if (exit.memory_limit_bytes == 0) exit.memory_limit_bytes = MemoryLimitOf(pod);
  // If a container exceeded its limit, that is its own fault, even if its pod is being removed.
  if (exit.memory_kill != MemoryKill::kNone) return exit;
  exit.disruption = pod.disruption;
  exit.disruption_text = pod.disruption_text;
  const bool taken = pod.being_deleted || pod.stage != PodFacts::Stage::kEnded;
  if (exit.disruption == Disruption::kNone && taken && !ordered) {
    exit.disruption = Disruption::kDeleted;
    exit.disruption_text = "somebody deleted its pod";
  }
  return exit;
}

NodeExited ExitOfVanished(const std::string& node, std::string text) {
  return {.node = node,
          .pid = kPodProcess,
          .exit = {.signal = SIGKILL},
          .disruption = Disruption::kDeleted,
          .disruption_text = std::move(text)};
}

}  // namespace muster::kubernetes
