#include "cli/cluster/export_pods.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/status.h"
#include "base/text.h"
#include "cli/cluster/event_words.h"
#include "cli/show/output.h"
#include "kubernetes/model/api_error.h"
#include "kubernetes/model/json_access.h"
#include "kubernetes/model/pod_state.h"

namespace muster::cluster {
namespace {

using kubernetes::ApiErrorKind;
using kubernetes::KindOf;
using kubernetes::PodStage;
using kubernetes::PodState;
using kubernetes::Resource;
using nlohmann::json;

constexpr char kExportContainer[] = "muster";
constexpr std::chrono::milliseconds kPodLookInterval{500};
constexpr std::chrono::minutes kPendingMax{5};
constexpr std::chrono::seconds kNameFreeMax{30};
constexpr std::chrono::seconds kGrace{1};
constexpr size_t kExportReasonBytesMax = 1000;

constexpr char kOtherWays[] =
    "A volume that is ReadWriteOnce serves one machine at a time: if a pod of the job has it on "
    "another machine, wait for the end of the job, and export then. With snapshots on S3 "
    "(spec.snapshots.directory), an export of a running job needs no pod";

std::string Said(const PodState& state) {
  return Excerpt(Printable(Describe(state)), kExportReasonBytesMax);
}

/// A missing claim would keep the pod waiting for ever, so this checks first. If the user may not
/// see claims, the scheduler's events report a missing one.
absl::Status CheckClaims(Cluster* cluster, const json& pod) {
  for (const std::string& claim : kubernetes::ClaimsOf(pod)) {
    const absl::Status found =
        cluster->client()
            .Get(
                {.resource = Resource::kPersistentVolumeClaims, .ns = cluster->ns(), .name = claim})
            .status();
    if (KindOf(found) != ApiErrorKind::kNotFound || found.ok()) continue;
    return absl::NotFoundError(
        fmt::format("the claim {} is not there in {}, and with it what the job has learned; only a "
                    "backup of the volume can bring it back",
                    claim, cluster->Where()));
  }
  return absl::OkStatus();
}

absl::Status DeletePod(Cluster* cluster, const std::string& name, const std::string& uid) {
  const absl::Status status =
      cluster->client()
          .Delete({.resource = Resource::kPods, .ns = cluster->ns(), .name = name},
                  {.uid = uid, .grace = kGrace})
          .status();
  return KindOf(status) == ApiErrorKind::kNotFound ? absl::OkStatus() : status;
}

/// Makes the name free: it removes a pod that has ended. OK if the name is free.
absl::Status FreeName(Cluster* cluster, const std::string& name, int signal_fd) {
  const TimePoint end = cluster->clock().Now() + kNameFreeMax;
  while (cluster->clock().Now() < end) {
    const absl::StatusOr<json> pod =
        cluster->client().Get({.resource = Resource::kPods, .ns = cluster->ns(), .name = name});
    if (KindOf(pod.status()) == ApiErrorKind::kNotFound && !pod.ok()) return absl::OkStatus();
    if (!pod.ok()) return pod.status();
    const PodState state = kubernetes::ReadPodState(*pod, kExportContainer);
    const bool is_over = state.stage == PodStage::kSucceeded || state.stage == PodStage::kFailed;
    if (!state.being_deleted && !is_over) break;
    if (!state.being_deleted) MUSTER_RETURN_IF_ERROR(DeletePod(cluster, name, state.uid));
    MUSTER_RETURN_IF_ERROR(PauseUnlessSignal(signal_fd, kPodLookInterval));
  }
  return absl::AlreadyExistsError(
      fmt::format("another export of the job runs (the pod {}). Wait for its end; if nobody waits "
                  "for it any more: `kubectl --namespace {} delete pod {}`",
                  name, cluster->ns(), name));
}

}  // namespace

absl::StatusOr<bool> HasBegun(const json& pod) {
  const PodState state = kubernetes::ReadPodState(pod, kExportContainer);
  const auto never = [&](std::string_view what) {
    return absl::FailedPreconditionError(
        fmt::format("the pod {} of the export {}: {}", state.name, what, Said(state)));
  };
  if (state.being_deleted) return never("is deleted by somebody");
  switch (state.stage) {
    case PodStage::kRunning:
      return true;
    case PodStage::kImageError:
    case PodStage::kConfigError:
      return never("cannot start");
    case PodStage::kSucceeded:
    case PodStage::kFailed:
      return never("has ended too early. Its image needs a `muster` of this version");
    default:
      return false;
  }
}

std::string WaitsFor(const json& pod, const std::vector<json>& events) {
  const PodState state = kubernetes::ReadPodState(pod, kExportContainer);
  if (state.stage != PodStage::kStarting) return Said(state);
  // While volumes are being attached and mounted, only events say what is wrong.
  const std::string warning = NewestWarning(events, state.uid);
  if (warning.empty()) return Said(state);
  return Excerpt(fmt::format("{}: {}", Said(state), warning), kExportReasonBytesMax);
}

absl::Status PauseUnlessSignal(int signal_fd, std::chrono::milliseconds length) {
  pollfd fd{signal_fd, POLLIN, 0};
  const int ready = ::poll(&fd, 1, static_cast<int>(length.count()));
  return ready > 0 ? absl::CancelledError("a signal ended it") : absl::OkStatus();
}

ExportPodOwner::ExportPodOwner(Cluster* cluster, std::string name, std::string uid, int signal_fd)
    : cluster_(cluster), name_(std::move(name)), uid_(std::move(uid)), signal_fd_(signal_fd) {}

absl::StatusOr<std::unique_ptr<ExportPodOwner>> ExportPodOwner::Make(
    Cluster* cluster, const kubernetes::ExportPod& pod, const std::string& pods_text,
    int signal_fd) {
  MUSTER_ASSIGN_OR_RETURN(const json body, kubernetes::ExportPodBody(pod, pods_text));
  MUSTER_RETURN_IF_ERROR(CheckClaims(cluster, body));
  const std::string name = kubernetes::IdentityOf(body).name;
  MUSTER_RETURN_IF_ERROR(FreeName(cluster, name, signal_fd));
  const absl::StatusOr<json> made = cluster->client().Create(Resource::kPods, cluster->ns(), body);
  MUSTER_RETURN_IF_ERROR_PREPEND(made.status(), fmt::format("the pod {}", name));
  return std::unique_ptr<ExportPodOwner>(
      new ExportPodOwner(cluster, name, kubernetes::IdentityOf(*made).uid, signal_fd));
}

ExportPodOwner::~ExportPodOwner() {
  const absl::Status deleted = DeletePod(cluster_, name_, uid_);
  if (deleted.ok()) return;
  PrintNote(fmt::format("the pod {} could not be deleted, and ends by itself: {}", name_,
                        Message(deleted)));
}

absl::StatusOr<json> ExportPodOwner::Look() {
  MUSTER_ASSIGN_OR_RETURN(
      json pod,
      cluster_->client().Get({.resource = Resource::kPods, .ns = cluster_->ns(), .name = name_}));
  if (kubernetes::IdentityOf(pod).uid == uid_) return pod;
  return absl::FailedPreconditionError(
      fmt::format("somebody has deleted the pod {} of the export, and made another one", name_));
}

std::vector<json> ExportPodOwner::Events() {
  absl::StatusOr<kubernetes::ObjectList> events = cluster_->client().List(
      Resource::kEvents, cluster_->ns(), {.fields = fmt::format("involvedObject.uid={}", uid_)});
  return events.ok() ? std::move(events->items) : std::vector<json>{};
}

absl::Status ExportPodOwner::WaitUntilBegun() {
  const TimePoint end = cluster_->clock().Now() + kPendingMax;
  std::string said;
  while (true) {
    MUSTER_ASSIGN_OR_RETURN(const json pod, Look());
    MUSTER_ASSIGN_OR_RETURN(const bool has_begun, HasBegun(pod));
    if (has_begun) return absl::OkStatus();
    const std::string waits_for = WaitsFor(pod, Events());
    if (cluster_->clock().Now() >= end) {
      return absl::DeadlineExceededError(
          fmt::format("the pod {} of the export did not start within {} minutes: {}. {}", name_,
                      kPendingMax.count(), waits_for, kOtherWays));
    }
    if (waits_for != said) PrintNote(fmt::format("the pod {} of the export: {}", name_, waits_for));
    said = waits_for;
    MUSTER_RETURN_IF_ERROR(PauseUnlessSignal(signal_fd_, kPodLookInterval));
  }
}

absl::Status ExportPodOwner::CheckRuns() {
  MUSTER_ASSIGN_OR_RETURN(const json pod, Look());
  return HasBegun(pod).status();
}

}  // namespace muster::cluster
