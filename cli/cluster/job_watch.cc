#include "cli/cluster/job_watch.h"

#include <fmt/format.h>

#include <utility>

#include "base/status.h"
#include "base/text.h"
#include "cli/cluster/event_words.h"
#include "kubernetes/model/api_error.h"
#include "kubernetes/model/json_access.h"
#include "kubernetes/model/labels.h"

namespace muster::cluster {
namespace {

using kubernetes::Resource;

/// An older look is not trusted to name the pod.
constexpr std::chrono::seconds kLookAgeMax{4};
/// Events are read only if a pod starts for longer than this. Before, machines also warn of things
/// that will soon be there.
constexpr std::chrono::seconds kStartsForLong{10};

/// Why a claim of a waiting pod gets no volume. Empty if the user may not look there.
std::string ClaimTrouble(Cluster* cluster, const std::vector<nlohmann::json>& pods,
                         const std::string& pod) {
  for (const nlohmann::json& one : pods) {
    if (kubernetes::IdentityOf(one).name != pod) continue;
    for (const std::string& name : ClaimsOf(one)) {
      const absl::StatusOr<nlohmann::json> claim = cluster->client().Get(
          {.resource = Resource::kPersistentVolumeClaims, .ns = cluster->ns(), .name = name});
      if (!claim.ok()) continue;
      const absl::StatusOr<kubernetes::ObjectList> events =
          cluster->client().List(Resource::kEvents, cluster->ns(),
                                 {.fields = fmt::format("involvedObject.name={}", name)});
      std::string trouble = events.ok() ? UnboundClaim(*claim, events->items) : "";
      if (!trouble.empty()) return trouble;
    }
  }
  return "";
}

/// The newest warning about an object. Empty if the user may not look there.
std::string WarningOf(Cluster* cluster, const nlohmann::json& object, const std::string& job) {
  const std::string uid = kubernetes::IdentityOf(object).uid;
  const absl::StatusOr<kubernetes::ObjectList> events = cluster->client().List(
      Resource::kEvents, cluster->ns(), {.fields = fmt::format("involvedObject.uid={}", uid)});
  return events.ok() ? WithAdvice(NewestWarning(events->items, uid), job) : "";
}

/// Further words about what the job waits for. The Job and its pod do not have them.
std::string TroubleOf(Cluster* cluster, const nlohmann::json& job,
                      const std::vector<nlohmann::json>& pods, const JobLook& look) {
  const std::string name = kubernetes::IdentityOf(job).name;
  if (look.stage == JobStage::kWaiting) return WarningOf(cluster, job, name);
  if (look.stage != JobStage::kPending) return "";
  for (const nlohmann::json& pod : pods) {
    if (kubernetes::IdentityOf(pod).name != look.pod) continue;
    std::string claim = ClaimTrouble(cluster, pods, look.pod);
    if (!claim.empty()) return claim;
    const bool starts = StartsFor(pod, cluster->clock().Wall(), kStartsForLong);
    return starts ? WarningOf(cluster, pod, name) : "";
  }
  return "";
}

}  // namespace

absl::StatusOr<JobLook> LookAt(Cluster* cluster, const std::string& job) {
  absl::StatusOr<nlohmann::json> object =
      cluster->client().Get({.resource = Resource::kJobs, .ns = cluster->ns(), .name = job});
  if (kubernetes::KindOf(object.status()) == kubernetes::ApiErrorKind::kNotFound) return JobLook{};
  if (!object.ok()) return object.status();
  MUSTER_ASSIGN_OR_RETURN(
      const kubernetes::ObjectList pods,
      cluster->client().List(Resource::kPods, cluster->ns(),
                             {.labels = fmt::format("{}={},{}=master", kubernetes::kJobLabel, job,
                                                    kubernetes::kRoleLabel)}));
  JobLook look = ReadJobLook(*object, pods.items);
  const std::string trouble = TroubleOf(cluster, *object, pods.items, look);
  if (!trouble.empty()) look.why += fmt::format("; {}", trouble);
  return look;
}

std::vector<std::string> StuckNodes(Cluster* cluster, const std::string& job) {
  std::vector<std::string> stuck;
  const absl::StatusOr<std::vector<nlohmann::json>> pods = PodsOf(cluster, job);
  if (!pods.ok()) return stuck;
  for (const nlohmann::json& pod : *pods) {
    const std::string node =
        kubernetes::TextAt(pod, {"metadata", "labels", kubernetes::kNodeLabel});
    if (node.empty() || !StartsFor(pod, cluster->clock().Wall(), kStartsForLong)) continue;
    const std::string warning = WarningOf(cluster, pod, job);
    if (warning.empty()) continue;
    stuck.push_back(fmt::format("the pod {} of {} does not start: {}",
                                kubernetes::IdentityOf(pod).name, Printable(node), warning));
  }
  return stuck;
}

absl::StatusOr<std::vector<nlohmann::json>> PodsOf(Cluster* cluster, const std::string& job) {
  MUSTER_ASSIGN_OR_RETURN(
      kubernetes::ObjectList pods,
      cluster->client().List(Resource::kPods, cluster->ns(),
                             {.labels = fmt::format("{}={}", kubernetes::kJobLabel, job)}));
  return std::move(pods.items);
}

JobWatch::JobWatch(Cluster* cluster, std::string job, JobLook first,
                   std::function<void(const JobLook&)> on_look)
    : cluster_(cluster),
      job_(std::move(job)),
      uid_(first.uid),
      on_look_(std::move(on_look)),
      newest_(std::move(first)),
      seen_at_(cluster->clock().Now()),
      thread_([this](const std::stop_token& stop) { Run(stop); }) {}

JobWatch::~JobWatch() {
  thread_.request_stop();
  thread_.join();
}

JobLook JobWatch::newest() const {
  const MutexLock lock(&mutex_);
  return newest_;
}

absl::Status JobWatch::trouble() const {
  const MutexLock lock(&mutex_);
  return trouble_;
}

absl::StatusOr<std::string> JobWatch::FindPod() {
  const Clock& clock = cluster_->clock();
  {
    const MutexLock lock(&mutex_);
    const bool is_fresh = clock.Now() - seen_at_ < kLookAgeMax;
    if (is_fresh && newest_.stage == JobStage::kRunning) return newest_.pod;
  }
  Look();
  const MutexLock lock(&mutex_);
  MUSTER_RETURN_IF_ERROR(trouble_);
  MUSTER_RETURN_IF_ERROR(CheckRuns(job_, cluster_->Where(), newest_));
  return newest_.pod;
}

void JobWatch::Look() {
  absl::StatusOr<JobLook> look = LookAt(cluster_, job_);
  const MutexLock lock(&mutex_);
  trouble_ = look.status();
  if (!look.ok()) return;
  newest_ = LookOfJob(uid_, *std::move(look));
  seen_at_ = cluster_->clock().Now();
}

void JobWatch::Run(const std::stop_token& stop) {
  const std::stop_callback wake(stop, [this] {
    const MutexLock lock(&mutex_);
    stopping_.SignalAll();
  });
  const Clock& clock = cluster_->clock();
  while (!stop.stop_requested()) {
    {
      const TimePoint end = clock.Now() + kInterval;
      const MutexLock lock(&mutex_);
      while (!stop.stop_requested() && clock.Now() < end) {
        stopping_.WaitFor(&mutex_, end - clock.Now());
      }
    }
    if (stop.stop_requested()) return;
    Look();
    if (on_look_ && trouble().ok()) on_look_(newest());
  }
}

}  // namespace muster::cluster
