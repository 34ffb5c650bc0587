// What the API server answers, for PodBook.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "kubernetes/model/api_error.h"
#include "kubernetes/model/retry_wait.h"
#include "kubernetes/pods/pod_book.h"

namespace muster::kubernetes {
namespace {

/// Failures in a row after which people are told that the API server is away.
constexpr uint32_t kFailuresUntilTold = 3;

/// True if a change that was answered so may have happened.
bool IsOpen(ApiErrorKind kind) {
  return kind == ApiErrorKind::kUnavailable || kind == ApiErrorKind::kOther;
}

/// Why a node that was refused so has no pod; kNone: it is tried again soon.
NodeWait WaitOf(ApiErrorKind kind) {
  switch (kind) {
    case ApiErrorKind::kQuotaExceeded:
      return NodeWait::kQuota;
    case ApiErrorKind::kForbidden:
    case ApiErrorKind::kUnauthorized:
    case ApiErrorKind::kNamespaceEnding:
      return NodeWait::kForbidden;
    case ApiErrorKind::kInvalid:
    case ApiErrorKind::kNotFound:
      return NodeWait::kConfig;
    default:
      return NodeWait::kNone;
  }
}

}  // namespace

void PodBook::Answered(const PodAnswer& answer, TimePoint now) {
  const auto found = in_flight_.find(answer.id);
  if (found == in_flight_.end()) return;
  const InFlight call = found->second;
  in_flight_.erase(found);
  if (call.kind == PodCall::Kind::kLookForJob) {
    OnLookForJob(answer, now);
    return Advance(now);
  }
  const auto node = nodes_.find(call.node);
  if (node == nodes_.end()) return;
  Life* const life = LifeOf(call.node);
  const auto pod = node->second.pods.find(call.start);
  switch (call.kind) {
    case PodCall::Kind::kCreate:
      if (life != nullptr && life->call == answer.id) OnCreate(&node->second, life, answer, now);
      break;
    case PodCall::Kind::kGet:
      if (life != nullptr && life->call == answer.id) OnLook(&node->second, life, answer, now);
      break;
    case PodCall::Kind::kDelete:
      if (pod != node->second.pods.end() && pod->second.deletion_call == answer.id) {
        OnDelete(&pod->second, call, answer.status, now);
      }
      break;
    case PodCall::Kind::kLookForJob:
      break;
    case PodCall::Kind::kResize:
      if (life != nullptr && life->resize_call == answer.id)
        OnResize(life, call, answer.status, now);
      break;
  }
  Advance(now);
}

void PodBook::OnCreate(NodePods* node, Life* life, const PodAnswer& answer, TimePoint now) {
  life->call = 0;
  if (!answer.status.ok()) return Refused(life, answer.status, now);
  if (answer.pod && answer.pod->run != options_.run.run) {
    // Without its labels, no scaler would find it again.
    return OnNameTaken(life, *answer.pod, now);
  }
  // It would have been seen if it were still there.
  Exit(node, life, ExitOfVanished(node->name, "its pod went as soon as it was made"));
}

void PodBook::OnLook(NodePods* node, Life* life, const PodAnswer& answer, TimePoint now) {
  life->call = 0;
  if (KindOf(answer.status) == ApiErrorKind::kNotFound) {
    life->stage = Life::Stage::kToCreate;
    life->retry.at = now + RetryWait(life->retry.failures, std::nullopt, &random_);
    return;
  }
  if (!answer.status.ok() || !answer.pod) return Refused(life, answer.status, now);
  const PodFacts& pod = *answer.pod;
  const bool ours = pod.run == options_.run.run && pod.node == node->name &&
                    pod.start == life->order.start && (pod.owned || orphaned_);
  if (!ours) return OnNameTaken(life, pod, now);
  Exit(node, life, ExitOfVanished(node->name, "its pod went as soon as it was made"));
}

void PodBook::OnNameTaken(Life* life, const PodFacts& other, TimePoint now) {
  life->stage = Life::Stage::kToCreate;
  life->retry.at = now + options_.slow_retry;
  const bool of_run = other.run == options_.run.run;
  const bool of_job = !of_run && IsNamedAsNode(other, options_.run.job);
  if (of_job && !other.being_deleted) {
    Call({.kind = PodCall::Kind::kDelete,
          .name = other.name,
          .uid = other.uid,
          .grace = other.grace},
         life->order.node, life->order.start);
  }
  const std::string whose =
      of_job   ? fmt::format("a pod of an earlier run of this job{}",
                           other.being_deleted ? ", which is being deleted (does a finalizer hold "
                                                   "it? kubectl get pod -o yaml)"
                                                 : ", which is deleted now")
      : of_run ? "a pod with the labels of this run, which its Job does not own: delete it"
               : "a pod that is not of this job: delete it, or give the job another name";
  TellHeld(life, NodeWait::kConfig,
           fmt::format("the name \"{}\" belongs to {}", other.name, whose));
}

void PodBook::Refused(Life* life, const absl::Status& status, TimePoint now) {
  const ApiErrorKind kind = KindOf(status);
  const bool looks = life->stage == Life::Stage::kLooking;
  // The pod may be there: an answer was lost, or somebody has its name.
  const bool open = looks || IsOpen(kind) || kind == ApiErrorKind::kAlreadyExists;
  life->stage = open ? Life::Stage::kToLook : Life::Stage::kToCreate;
  life->retry.at = RetryAt(&life->retry, status, now);
  if (kind == ApiErrorKind::kAlreadyExists) {
    life->retry.at = now;
  } else if (const NodeWait wait = WaitOf(kind); wait != NodeWait::kNone) {
    TellHeld(life, wait, std::string(Message(status)));
  } else if (life->retry.failures >= kFailuresUntilTold) {
    TellHeld(life, NodeWait::kUnreachable, std::string(Message(status)));
  }
}

TimePoint PodBook::RetryAt(Retry* retry, const absl::Status& status, TimePoint now) {
  ++retry->failures;
  const std::chrono::milliseconds wait = RetryWait(retry->failures, RetryAfterOf(status), &random_);
  const NodeWait why = WaitOf(KindOf(status));
  const bool slow = why == NodeWait::kForbidden || why == NodeWait::kConfig;
  return now + (slow ? std::max<std::chrono::milliseconds>(wait, options_.slow_retry) : wait);
}

void PodBook::OnLookForJob(const PodAnswer& answer, TimePoint now) {
  look_call_ = 0;
  // Kubernetes takes the owner from one pod after the other, so the answer may be too early.
  look_at_ = now + options_.slow_retry;
  if (!answer.status.ok() || answer.job_is_there) return;
  orphaned_ = true;
  for (const auto& [uid, facts] : std::exchange(unowned_, {})) Note(facts, now);
}

void PodBook::OnDelete(Pod* pod, const InFlight& call, const absl::Status& status, TimePoint now) {
  pod->deletion_call = 0;
  const ApiErrorKind kind = KindOf(status);
  // No pod, or another one, has the name: the watch will tell of the end of this one.
  const bool gone = kind == ApiErrorKind::kNotFound || kind == ApiErrorKind::kConflict;
  if (!status.ok() && !gone) {
    pod->deletion.at = RetryAt(&pod->deletion, status, now);
    if (pod->deletion.failures == 1 && !IsOpen(kind)) {
      notes_.push_back(
          fmt::format("pod {} cannot be deleted: {}", pod->facts.name, Message(status)));
    }
    return;
  }
  pod->deletion_taken = call.grace <= pod->grace.value_or(call.grace);
  if (!status.ok() || call.grace.count() > 0 || pod->ended()) return;
  pod->lost = true;
  if (pod->facts.disruption == Disruption::kNone) {
    pod->facts.disruption = Disruption::kNodeLost;
    pod->facts.disruption_text = "its machine did not confirm its end";
  }
}

void PodBook::OnResize(Life* life, const InFlight& call, const absl::Status& status,
                       TimePoint now) {
  life->resize_call = 0;
  const ApiErrorKind kind = KindOf(status);
  if (status.ok() && !life->resize) {
    life->resizing = call.limits;
    life->told_deferred = false;
  }
  if (status.ok() || kind == ApiErrorKind::kNotFound || kind == ApiErrorKind::kConflict) return;
  const bool passes = IsOpen(kind) || kind == ApiErrorKind::kTooManyRequests ||
                      kind == ApiErrorKind::kQuotaExceeded;
  if (passes) {
    life->resize_retry.at = RetryAt(&life->resize_retry, status, now);
    if (!life->resize) life->resize = call.limits;
    return;
  }
  life->refused = call.limits;
  reports_.push_back(NodeResized{.node = life->order.node,
                                 .limits = call.limits,
                                 .answer = ResizeAnswer::kRefused,
                                 .reason = std::string(Message(status))});
}

}  // namespace muster::kubernetes
