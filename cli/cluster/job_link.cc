#include "cli/cluster/job_link.h"

#include <fmt/format.h>

#include <utility>

#include "base/status.h"
#include "cli/cluster/link_files.h"
#include "cli/show/output.h"
#include "job/in_cluster.h"
#include "kubernetes/model/api_error.h"
#include "kubernetes/model/json_access.h"

namespace muster::cluster {
namespace {

using kubernetes::Resource;

constexpr std::chrono::milliseconds kStillThereInterval{500};

/// The text of the job file in the job's ConfigMap. Empty if it is not available, because few verbs
/// need it.
std::string JobFileIn(Cluster* cluster, const InClusterNames& names) {
  const absl::StatusOr<nlohmann::json> map = cluster->client().Get(
      {.resource = Resource::kConfigMaps, .ns = cluster->ns(), .name = names.muster});
  return map.ok() ? kubernetes::TextAt(*map, {"data", "job.yaml"}) : "";
}

/// Reports a missing object, because the job may run on without it, but worse than it seems.
void SayWhatIsMissing(Cluster* cluster, const std::string& job) {
  const std::string service = InClusterNames(job).master_service;
  const absl::Status there =
      cluster->client()
          .Get({.resource = Resource::kServices, .ns = cluster->ns(), .name = service})
          .status();
  if (!there.ok() && kubernetes::KindOf(there) == kubernetes::ApiErrorKind::kNotFound) {
    PrintNote(
        fmt::format("the Service {} is not there, so workers and servers that start cannot "
                    "find the master. `muster run JOB.yaml --on kubernetes`, with the job's "
                    "file, puts it back",
                    service));
  }
  for (const std::string& line : StuckNodes(cluster, job)) PrintNote(line);
}

absl::Status CheckOptions(const QueryOptions& query) {
  if (!query.master.empty() || !query.target.state_directory.empty()) {
    return absl::InvalidArgumentError(
        "--on kubernetes finds the job by its name; it goes neither with --master nor with "
        "--state-dir");
  }
  return absl::OkStatus();
}

int RunOverLink(QueryOptions* query, WhenPending when_pending,
                const std::function<int(JobLink*)>& verb) {
  const absl::Status usable = CheckOptions(*query);
  if (!usable.ok()) return PrintError(usable);
  const absl::StatusOr<JobPlace> place = PlaceOf(query->target);
  if (!place.ok()) return PrintError(Message(place.status()), kExitUsage);
  const absl::StatusOr<std::unique_ptr<Cluster>> cluster =
      Cluster::Open(query->target.cluster, place->ns);
  if (!cluster.ok()) return PrintError(Message(cluster.status()), kExitUsage);
  const absl::StatusOr<JobLook> look = LookAt(cluster->get(), place->job);
  if (!look.ok()) return PrintError(Message(look.status()), kExitUnreachable);
  const bool waits = look->stage == JobStage::kPending || look->stage == JobStage::kWaiting;
  if (!waits || when_pending == WhenPending::kSay) {
    const absl::Status runs = CheckRuns(place->job, (*cluster)->Where(), *look);
    if (!runs.ok()) return PrintError(runs);
  }
  const absl::StatusOr<std::unique_ptr<JobLink>> link =
      JobLink::Open(cluster->get(), place->job, *look);
  if (!link.ok()) return PrintError(Message(link.status()), kExitUnreachable);
  query->target = {.job_file = "",
                   .state_directory = (*link)->state().path(),
                   .linked_job = fmt::format("the job {} in {}", place->job, (*cluster)->Where())};
  SayWhatIsMissing(cluster->get(), place->job);
  const int code = verb(link->get());
  // The verb itself knows only a port of this machine, so this adds what is wrong with the job.
  const absl::Status trouble = (*link)->trouble();
  if (code == kExitUnreachable && !trouble.ok()) PrintNote(Message(trouble));
  return code;
}

}  // namespace

JobLink::JobLink(std::unique_ptr<PrivateFolder> folder)
    : folder_(std::move(folder)), state_(folder_->path()) {}

absl::StatusOr<std::unique_ptr<JobLink>> JobLink::Open(Cluster* cluster, const std::string& job,
                                                       const JobLook& look, OnLook on_look) {
  MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<PrivateFolder> folder, PrivateFolder::Make());
  std::unique_ptr<JobLink> link(new JobLink(std::move(folder)));
  MUSTER_RETURN_IF_ERROR(link->Connect(cluster, job, look, std::move(on_look)));
  return link;
}

absl::Status JobLink::Connect(Cluster* cluster, const std::string& job, const JobLook& look,
                              OnLook on_look) {
  const InClusterNames names(job);
  LinkedJob linked{.job = job, .run_id = look.uid};
  absl::StatusOr<nlohmann::json> secret = cluster->client().Get(
      {.resource = Resource::kSecrets, .ns = cluster->ns(), .name = names.muster});
  if (kubernetes::KindOf(secret.status()) == kubernetes::ApiErrorKind::kNotFound) {
    return NoSecret(cluster->ns(), job);
  }
  MUSTER_ASSIGN_OR_RETURN(linked.secret, std::move(secret));
  linked.job_file = JobFileIn(cluster, names);
  watch_ = std::make_unique<JobWatch>(
      cluster, job, look, [this, on_look = std::move(on_look)](const JobLook& now) {
        if (on_look) on_look(now);
        if (now.stage == JobStage::kWaiting || now.stage == JobStage::kPending) return;
        if (now.stage == JobStage::kRunning) return;
        state_.RemoveRestAddress();
        state_.RemoveEndpoint();
      });
  const auto open = [&](uint16_t port) {
    return kubernetes::Tunnel::Open(
        cluster->credentials(), &cluster->clock(),
        {.ns = cluster->ns(), .port = port, .find_pod = [this] { return watch_->FindPod(); }});
  };
  MUSTER_ASSIGN_OR_RETURN(master_, open(kInClusterMasterPort));
  MUSTER_ASSIGN_OR_RETURN(rest_, open(kInClusterRestPort));
  linked.master_port = master_->port();
  linked.rest_port = rest_->port();
  return WriteLinkFiles(linked, state_);
}

absl::Status JobLink::trouble() const {
  MUSTER_RETURN_IF_ERROR(watch_->trouble());
  const JobLook look = watch_->newest();
  if (look.stage != JobStage::kRunning) {
    return absl::UnavailableError(fmt::format("the job on the cluster: {}", Describe(look)));
  }
  MUSTER_RETURN_IF_ERROR(master_->last_error());
  return rest_->last_error();
}

int OverLink(QueryOptions* query, WhenPending when_pending, const std::function<int()>& verb) {
  return RunOverLink(query, when_pending, [&](JobLink*) { return verb(); });
}

int OverLinkUntilSignal(QueryOptions* query, const std::function<int()>& verb) {
  return RunOverLink(query, WhenPending::kSay, [&](JobLink* link) {
    const int code = verb();
    if (code != kExitSucceeded) return code;
    PrintNote("the address holds until you press Ctrl-C, or the job ends");
    while (link->state().ReadEndpoint().ok()) SleepFor(kStillThereInterval);
    return code;
  });
}

}  // namespace muster::cluster
