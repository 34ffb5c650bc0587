#include "cli/cluster/cluster_export.h"

#include <fmt/format.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "base/status.h"
#include "cli/ask/export_command.h"
#include "cli/cluster/cluster_access.h"
#include "cli/cluster/export_pods.h"
#include "cli/cluster/job_link.h"
#include "cli/cluster/job_watch.h"
#include "cli/cluster/link_files.h"
#include "cli/cluster/rights.h"
#include "cli/export/export_client.h"
#include "cli/run/run_command.h"
#include "cli/show/output.h"
#include "job/file/job_file.h"
#include "job/in_cluster.h"
#include "kubernetes/client/tunnel.h"
#include "kubernetes/model/api_error.h"
#include "kubernetes/model/json_access.h"
#include "store/names/place.h"

namespace muster::cluster {
namespace {

using exporting::ExportRequest;
using exporting::ExportSocket;
using kubernetes::Resource;
using kubernetes::TextAt;
using nlohmann::json;

/// The pod says nothing while it writes the export. A dead connection is noticed earlier by other
/// means.
constexpr std::chrono::hours kSilenceMax{2};
/// The container may have started before it listens, so connecting is tried this often.
constexpr int kConnectTriesMax = 100;
constexpr std::chrono::milliseconds kConnectPause{300};

/// One export that a pod makes.
struct PodExport {
  Cluster* cluster = nullptr;
  std::string job;
  std::string output;
  int signal_fd = -1;
  kubernetes::ExportPod pod;
  std::string pods_text;
  std::string token;
  std::unique_ptr<ExportPodOwner> owner = nullptr;
  std::unique_ptr<kubernetes::Tunnel> tunnel = nullptr;
};

absl::StatusOr<json> GetObject(Cluster* cluster, Resource resource, const std::string& name) {
  absl::StatusOr<json> object =
      cluster->client().Get({.resource = resource, .ns = cluster->ns(), .name = name});
  if (object.ok() || kubernetes::KindOf(object.status()) != kubernetes::ApiErrorKind::kNotFound) {
    return object;
  }
  return absl::NotFoundError(
      fmt::format("there is no {} {} in {}, which an export needs. Did the job ever run there? "
                  "`muster list --on kubernetes` shows its jobs",
                  kubernetes::KindOf(resource), name, cluster->Where()));
}

/// The claim that holds the state directory. The job file in the ConfigMap names it.
absl::StatusOr<std::string> StateClaimOf(const json& config_map, const InClusterNames& names) {
  MUSTER_ASSIGN_OR_RETURN(const JobSpec job,
                          ParseJobFile(TextAt(config_map, {"data", "job.yaml"}), "job.yaml", "/"));
  const std::string& claim = job.kubernetes.state.claim;
  return claim.empty() ? names.state_claim : claim;
}

/// `look` is the newest look at the job. A running job is asked itself, so the pod then needs no
/// state.
absl::StatusOr<PodExport> Prepare(Cluster* cluster, const JobPlace& place, const JobLook& look) {
  const InClusterNames names(place.job);
  MUSTER_ASSIGN_OR_RETURN(const json config_map,
                          GetObject(cluster, Resource::kConfigMaps, names.muster));
  MUSTER_ASSIGN_OR_RETURN(const json secret, GetObject(cluster, Resource::kSecrets, names.muster));
  PodExport made{.cluster = cluster, .job = place.job, .pod = {.job = place.job}};
  made.pods_text = TextAt(config_map, {"data", "pods.json"});
  MUSTER_ASSIGN_OR_RETURN(made.token, SecretValue(secret, "token"));
  const bool is_there = look.stage != JobStage::kAbsent && look.stage != JobStage::kDeleted;
  if (is_there) made.pod.owner_uid = look.uid;
  if (look.stage != JobStage::kRunning) {
    MUSTER_ASSIGN_OR_RETURN(made.pod.state_claim, StateClaimOf(config_map, names));
  }
  return made;
}

absl::Status MakePod(PodExport* one) {
  Cluster* const cluster = one->cluster;
  MUSTER_RETURN_IF_ERROR(
      CheckRights(cluster->ns(), RightsToExport(), [cluster](const Right& right) {
        return cluster->client().MayI(right.verb, right.resource, right.subresource, cluster->ns());
      }));
  MUSTER_ASSIGN_OR_RETURN(one->owner,
                          ExportPodOwner::Make(cluster, one->pod, one->pods_text, one->signal_fd));
  MUSTER_RETURN_IF_ERROR(one->owner->WaitUntilBegun());
  MUSTER_ASSIGN_OR_RETURN(one->tunnel,
                          kubernetes::Tunnel::Open(cluster->credentials(), &cluster->clock(),
                                                   {.ns = cluster->ns(),
                                                    .port = kInClusterExportPort,
                                                    .find_pod = [name = one->owner->name()] {
                                                      return absl::StatusOr<std::string>(name);
                                                    }}));
  return absl::OkStatus();
}

/// Connects to the pod, and waits until it has said hello.
absl::StatusOr<ExportSocket> ConnectToPod(PodExport* one) {
  for (int tries = 1;; ++tries) {
    MUSTER_ASSIGN_OR_RETURN(
        ExportSocket socket,
        ExportSocket::Connect(one->tunnel->port(), one->signal_fd, kSilenceMax));
    const absl::StatusOr<std::string> hello = socket.ReadLine();
    if (hello.ok() && *hello == exporting::kExportHello) return socket;
    if (hello.ok()) {
      return absl::FailedPreconditionError("the image of the job has another version of muster");
    }
    if (!absl::IsUnavailable(hello.status())) return hello.status();
    MUSTER_RETURN_IF_ERROR(one->owner->CheckRuns());
    const absl::Status why = one->tunnel->last_error();
    if (absl::IsPermissionDenied(why)) return why;
    if (tries == kConnectTriesMax) {
      return absl::UnavailableError(fmt::format("the pod {} of the export does not answer: {}",
                                                one->owner->name(),
                                                Message(why.ok() ? hello.status() : why)));
    }
    MUSTER_RETURN_IF_ERROR(PauseUnlessSignal(one->signal_fd, kConnectPause));
  }
}

/// Sends a request. For the first one, it makes the pod.
absl::StatusOr<uint64_t> Ask(PodExport* one, ExportRequest request) {
  if (one->owner == nullptr) MUSTER_RETURN_IF_ERROR(MakePod(one));
  MUSTER_ASSIGN_OR_RETURN(ExportSocket socket, ConnectToPod(one));
  request.token = one->token;
  if (IsS3Place(one->output)) request.output = one->output;
  absl::StatusOr<uint64_t> tables = exporting::FetchExport(&socket, request, one->output);
  if (absl::IsUnavailable(tables.status())) {
    MUSTER_RETURN_IF_ERROR(one->owner->CheckRuns());
    return Annotate(tables.status(), one->owner->name());
  }
  return tables;
}

absl::StatusOr<v1::GetManifestResponse> AskMaster(const JobLink& link,
                                                  const ExportCommandOptions& options) {
  MUSTER_ASSIGN_OR_RETURN(const v1::GetManifestRequest which, ManifestRequestFor(options.epoch));
  const QueryOptions query{.target = {.state_directory = link.state().path()}};
  MUSTER_ASSIGN_OR_RETURN(const JobSource source, FindJobSource(query));
  MUSTER_ASSIGN_OR_RETURN(v1::GetManifestResponse manifest, source.client->GetManifest(which));
  if (manifest.tables().empty()) {
    return absl::FailedPreconditionError(
        "there is nothing to export yet: no trainer of the job has registered a table");
  }
  return manifest;
}

/// Exports from a job that runs. It asks for the first manifest before it makes a pod, because
/// snapshots on S3 need none.
absl::StatusOr<uint64_t> ExportRunning(PodExport* one, const JobLink& link,
                                       const ExportCommandOptions& options) {
  const auto write = [&](const v1::GetManifestResponse& newest) {
    if (IsS3Place(newest.snapshot_directory())) {
      return WriteExportOf(newest, link.state(), one->output);
    }
    return Ask(one, {.manifest = newest.SerializeAsString()}).status();
  };
  MUSTER_ASSIGN_OR_RETURN(
      const v1::GetManifestResponse written,
      ExportWhileItRuns({.fetch = [&] { return AskMaster(link, options); }, .write = write}));
  return ExportedTables(written);
}

/// Checks the options before anything is asked or made.
absl::Status CheckOptions(const ExportCommandOptions& options) {
  if (!options.query.master.empty() || !options.query.target.state_directory.empty()) {
    return absl::InvalidArgumentError(
        "--on kubernetes finds the job by its name; it goes neither with --master nor with "
        "--state-dir");
  }
  MUSTER_RETURN_IF_ERROR(ManifestRequestFor(options.epoch).status());
  if (IsS3Place(options.output_directory)) return absl::OkStatus();
  return exporting::CheckOutputFolder(options.output_directory);
}

/// Returns the number of tables.
absl::StatusOr<uint64_t> Export(Cluster* cluster, const JobPlace& place, int signal_fd,
                                const ExportCommandOptions& options) {
  MUSTER_ASSIGN_OR_RETURN(const JobLook look, LookAt(cluster, place.job));
  MUSTER_ASSIGN_OR_RETURN(PodExport one, Prepare(cluster, place, look));
  one.output = options.output_directory;
  one.signal_fd = signal_fd;
  if (look.stage != JobStage::kRunning) return Ask(&one, {.epoch = options.epoch});
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<JobLink> link,
                          JobLink::Open(cluster, place.job, look));
  return ExportRunning(&one, *link, options);
}

}  // namespace

int ExportOnCluster(const ExportCommandOptions& options) {
  const QueryOptions& query = options.query;
  const absl::Status usable = CheckOptions(options);
  if (!usable.ok()) return PrintError(usable);
  const absl::StatusOr<JobPlace> place = PlaceOf(query.target);
  if (!place.ok()) return PrintError(Message(place.status()), kExitUsage);
  const absl::StatusOr<std::unique_ptr<Cluster>> cluster =
      Cluster::Open(query.target.cluster, place->ns);
  if (!cluster.ok()) return PrintError(Message(cluster.status()), kExitUsage);
  // A signal must not leave the pod behind.
  const int signal_fd = BlockSignals();
  const absl::Cleanup close_signals = [signal_fd] { ::close(signal_fd); };
  const absl::StatusOr<uint64_t> tables = Export(cluster->get(), *place, signal_fd, options);
  if (absl::IsCancelled(tables.status())) return PrintError("stopped by a signal", kExitFailed);
  if (!tables.ok()) return PrintError(tables.status());
  PrintExported(query.output, options.output_directory, *tables);
  return kExitSucceeded;
}

}  // namespace muster::cluster
