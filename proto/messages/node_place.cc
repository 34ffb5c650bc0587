#include "proto/messages/node_place.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace muster {
namespace {

constexpr std::array<std::string_view, 6> kDisruptions = {"none",    "evicted",   "preempted",
                                                          "drained", "node-lost", "deleted"};
constexpr std::array<std::string_view, 7> kWaits = {
    "none", "unschedulable", "image", "quota", "forbidden", "config", "unreachable"};
constexpr std::array<std::string_view, 3> kResizeAnswers = {"done", "deferred", "refused"};

template <typename Value>
bool Find(std::span<const std::string_view> words, std::string_view word, Value* value) {
  const auto found = std::ranges::find(words, word);
  if (found == words.end()) return false;
  *value = static_cast<Value>(found - words.begin());
  return true;
}

std::string With(std::string text, std::string_view words) {
  if (!text.empty() && !words.empty()) text.append(": ").append(words);
  return text;
}

std::string WhyItWaits(NodeWait wait) {
  switch (wait) {
    case NodeWait::kUnschedulable:
      return "no machine has room for it";
    case NodeWait::kImage:
      return "its image cannot be had";
    case NodeWait::kQuota:
      return "a quota of the cluster is used up";
    case NodeWait::kForbidden:
      return "the scaler has not the right to start it";
    case NodeWait::kConfig:
      return "its container cannot be made";
    case NodeWait::kUnreachable:
      return "the cluster does not answer";
    case NodeWait::kNone:
      break;
  }
  return "";
}

std::string WhyItEnded(Disruption disruption) {
  switch (disruption) {
    case Disruption::kEvicted:
      return "its machine lacked a resource and evicted it";
    case Disruption::kPreempted:
      return "something of a higher priority took its place";
    case Disruption::kDrained:
      return "its machine is being emptied";
    case Disruption::kNodeLost:
      return "its machine does not answer any more";
    case Disruption::kDeleted:
      return "somebody deleted it";
    case Disruption::kNone:
      break;
  }
  return "";
}

}  // namespace

std::string_view ToString(Disruption disruption) {
  return kDisruptions[static_cast<size_t>(disruption)];
}
std::string_view ToString(NodeWait wait) {
  return kWaits[static_cast<size_t>(wait)];
}
std::string_view ToString(ResizeAnswer answer) {
  return kResizeAnswers[static_cast<size_t>(answer)];
}

bool FromWord(std::string_view word, Disruption* disruption) {
  return Find(kDisruptions, word, disruption);
}
bool FromWord(std::string_view word, NodeWait* wait) {
  return Find(kWaits, word, wait);
}
bool FromWord(std::string_view word, ResizeAnswer* answer) {
  return Find(kResizeAnswers, word, answer);
}

std::span<const std::string_view> WordsOf(Disruption /*disruption*/) {
  return kDisruptions;
}
std::span<const std::string_view> WordsOf(NodeWait /*wait*/) {
  return kWaits;
}
std::span<const std::string_view> WordsOf(ResizeAnswer /*answer*/) {
  return kResizeAnswers;
}

std::string WaitText(NodeWait wait, std::string_view words) {
  return With(WhyItWaits(wait), words);
}

std::string_view WaitAdvice(NodeWait wait) {
  switch (wait) {
    case NodeWait::kUnschedulable:
      return "It starts as soon as there is room: add machines, or ask for less (muster resize, or "
             "resources in the job file).";
    case NodeWait::kImage:
      return "It starts as soon as the image can be had: check the name of the image, the registry "
             "and the pull secret.";
    case NodeWait::kQuota:
      return "It starts as soon as the quota allows it: raise the quota of the namespace, or ask "
             "for less.";
    case NodeWait::kForbidden:
      return "It is tried again: give the job's service account the right.";
    case NodeWait::kConfig:
      return "It starts as soon as that is repaired: look for a missing secret, config map or "
             "claim, or a wrong command.";
    case NodeWait::kUnreachable:
      return "What runs continues. It is tried again until the cluster answers.";
    case NodeWait::kNone:
      break;
  }
  return "";
}

std::string DisruptionText(Disruption disruption, std::string_view words) {
  return With(WhyItEnded(disruption), words);
}

}  // namespace muster
