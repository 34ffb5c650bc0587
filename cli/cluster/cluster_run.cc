#include "cli/cluster/cluster_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <unistd.h>

#include <memory>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "base/file.h"
#include "base/status.h"
#include "cli/cluster/cluster_access.h"
#include "cli/cluster/follow.h"
#include "cli/cluster/follow_words.h"
#include "cli/cluster/job_link.h"
#include "cli/cluster/make_objects.h"
#include "cli/cluster/rights.h"
#include "cli/show/output.h"
#include "kubernetes/manifests/objects.h"
#include "kubernetes/model/api_error.h"
#include "kubernetes/model/json_access.h"
#include "proto/fields/json.h"

namespace muster::cluster {
namespace {

constexpr uint64_t kJobFileBytesMax = 1 << 20;

/// Until the job is followed, Ctrl-C ends the command at once.
void LetSignalsEnd() {
  sigset_t signals;
  ::sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::sigaddset(&signals, signal);
  ::sigprocmask(SIG_UNBLOCK, &signals, nullptr);
}

struct Prepared {
  kubernetes::ManifestJob job;
  std::unique_ptr<Cluster> cluster;
};

absl::StatusOr<Prepared> Prepare(const RunOptions& options) {
  MUSTER_ASSIGN_OR_RETURN(const std::string text, ReadFile(options.job_file, kJobFileBytesMax));
  kubernetes::ManifestFlags flags{.ns = options.cluster.ns, .image = options.image};
  MUSTER_ASSIGN_OR_RETURN(kubernetes::ManifestJob job,
                          kubernetes::ReadManifestJob(text, options.job_file, flags));
  const std::string named =
      options.cluster.ns.empty() ? job.spec.kubernetes.ns : options.cluster.ns;
  MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<Cluster> cluster, Cluster::Open(options.cluster, named));
  job.options.ns = cluster->ns();
  return Prepared{std::move(job), std::move(cluster)};
}

/// OK if the user may do all that is needed. Leaves out of the job's Role what it can do without.
absl::Status CheckUser(Prepared* prepared) {
  Cluster* const cluster = prepared->cluster.get();
  const auto may = [&](const Right& right) {
    return cluster->client().MayI(right.verb, right.resource, right.subresource, cluster->ns());
  };
  MUSTER_RETURN_IF_ERROR(CheckRights(cluster->ns(), RightsToRun(), may));
  MUSTER_ASSIGN_OR_RETURN(prepared->job.options.resizes_in_place, may(kubernetes::kRightToResize));
  if (!prepared->job.options.resizes_in_place) {
    PrintNote(
        fmt::format("you may not {} in the namespace {}, so the job may not, either: a node "
                    "whose limits change is started again",
                    TextOf(kubernetes::kRightToResize), cluster->ns()));
  }
  return absl::OkStatus();
}

/// `--retry-failed` is not in the job file, but of this one Job.
std::vector<nlohmann::json> ObjectsFor(const RunOptions& options,
                                       const kubernetes::ManifestJob& job) {
  std::vector<nlohmann::json> objects = kubernetes::ObjectsOf(job.spec, job.options);
  if (!options.retry_failed) return objects;
  for (nlohmann::json& object : objects) {
    if (kubernetes::TextAt(object, {"kind"}) != "Job") continue;
    for (nlohmann::json& container : object["spec"]["template"]["spec"]["containers"]) {
      if (kubernetes::TextAt(container, {"name"}) != "muster") continue;
      container["command"].push_back("--retry-failed");
    }
  }
  return objects;
}

int PrintPlan(const RunOptions& options, const Prepared& prepared, const JobLook& look) {
  const std::vector<nlohmann::json> objects = ObjectsFor(options, prepared.job);
  if (options.output == OutputFormat::kJson) {
    PrintData(JsonText({{"objects", objects}}, 2) + "\n");
    return kExitSucceeded;
  }
  std::vector<std::string> names;
  for (const nlohmann::json& object : objects) {
    names.push_back(fmt::format("{} {}", kubernetes::TextAt(object, {"kind"}),
                                kubernetes::IdentityOf(object).name));
  }
  PrintData(
      fmt::format("in {}, this would make or update:\n  {}\nand, if they are missing, the "
                  "Secrets of the job. The Job now: {}\n",
                  prepared.cluster->Where(), fmt::join(names, "\n  "), Describe(look)));
  return kExitSucceeded;
}

/// Whether the job that lives was made from another job file than this one.
bool HasOtherJobFile(const Prepared& prepared) {
  for (const nlohmann::json& object :
       kubernetes::ObjectsOf(prepared.job.spec, prepared.job.options)) {
    if (kubernetes::TextAt(object, {"kind"}) != "ConfigMap") continue;
    const absl::StatusOr<nlohmann::json> present =
        prepared.cluster->client().Get({.resource = kubernetes::Resource::kConfigMaps,
                                        .ns = prepared.cluster->ns(),
                                        .name = kubernetes::IdentityOf(object).name});
    return present.ok() && present->value("data", nlohmann::json()) != object.at("data");
  }
  return false;
}

/// Says what becomes of a job that lives.
void SayItLives(const RunOptions& options, const Prepared& prepared, const JobLook& look) {
  const std::string& name = prepared.job.spec.name;
  ClusterTarget target = options.cluster;
  target.ns = prepared.cluster->ns();
  const std::string asks = OptionsFor(name, target);
  const bool runs = look.stage == JobStage::kRunning;
  const std::string ending =
      runs ? fmt::format("muster drain {}", asks) : DeleteCommand(target.ns, name);
  PrintNote(fmt::format(
      "the job {} is there already ({}), and is left as it is{}. To change it, end it "
      "first (`{}`; its state stays), and then run it again",
      name, Describe(look),
      HasOtherJobFile(prepared) ? "; it was made from another job file or image than this one" : "",
      ending));
  if (options.retry_failed) {
    PrintNote(fmt::format(
        "--retry-failed is for a new start; {}`muster shards {} --retry` tries FAILED shards again",
        runs ? "" : "as soon as the job runs, ", asks));
  }
}

/// Makes what the job needs. Of a job that lives, only certificates are renewed.
absl::Status Make(const RunOptions& options, const Prepared& prepared, const JobLook& look) {
  const std::string& name = prepared.job.spec.name;
  Cluster* const cluster = prepared.cluster.get();
  const bool lives = look.stage == JobStage::kWaiting || look.stage == JobStage::kPending ||
                     look.stage == JobStage::kRunning;
  const absl::Status secrets = EnsureSecrets(cluster, prepared.job, look.stage, PrintNote);
  if (lives) {
    // The job can be followed without new certificates.
    if (!secrets.ok()) PrintNote(fmt::format("certificates: not renewed: {}", Message(secrets)));
    SayItLives(options, prepared, look);
    return absl::OkStatus();
  }
  MUSTER_RETURN_IF_ERROR(secrets);
  const std::vector<nlohmann::json> objects = ObjectsFor(options, prepared.job);
  MUSTER_RETURN_IF_ERROR(ApplyObjects(cluster, objects));
  if (look.stage != JobStage::kAbsent) {
    MUSTER_RETURN_IF_ERROR(DeleteEndedJob(cluster, name, look, PrintNote));
  }
  const absl::Status made = CreateJob(cluster, objects);
  if (made.ok() && !options.detach) {
    PrintNote(fmt::format("the job {} is made in {}", name, cluster->Where()));
  }
  return kubernetes::KindOf(made) == kubernetes::ApiErrorKind::kAlreadyExists ? absl::OkStatus()
                                                                              : made;
}

absl::Status SayIfNoNamespace(const absl::Status& made, const Prepared& prepared) {
  const std::string& ns = prepared.cluster->ns();
  const std::string words = fmt::format("namespaces \"{}\" not found", ns);
  if (Message(made).find(words) == std::string::npos) return made;
  return absl::Status(
      made.code(),
      fmt::format("{} is not there: `kubectl create namespace {}` makes it, and --namespace names "
                  "another one",
                  prepared.cluster->Where(), ns));
}

int CodeOf(const absl::Status& status) {
  const bool is_away = absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
  return is_away ? kExitUnreachable : kExitUsage;
}

int Follow(const RunOptions& options, const Prepared& prepared) {
  const std::string& name = prepared.job.spec.name;
  ClusterTarget target = options.cluster;
  target.ns = prepared.cluster->ns();
  const std::string asks = OptionsFor(name, target);
  if (options.detach) {
    PrintNote(fmt::format("the job {} is started in {}; `muster status {}` shows it", name,
                          prepared.cluster->Where(), asks));
    return kExitSucceeded;
  }
  const absl::StatusOr<JobLook> look = LookAt(prepared.cluster.get(), name);
  if (!look.ok()) return PrintError(Message(look.status()), CodeOf(look.status()));
  const int signal_fd = BlockSignals();
  const absl::Cleanup close_signals = [signal_fd] { ::close(signal_fd); };
  const absl::StatusOr<std::unique_ptr<JobLink>> link =
      JobLink::Open(prepared.cluster.get(), name, *look);
  if (!link.ok()) return PrintError(Message(link.status()), CodeOf(link.status()));
  return Follower(prepared.cluster.get(), link->get(),
                  {.spec = prepared.job.spec,
                   .asks = asks,
                   .progress = options.progress ? ProgressDisplay::ModeOf(STDERR_FILENO)
                                                : ProgressDisplay::Mode::kOff,
                   .output = options.output,
                   .signal_fd = signal_fd})
      .Run();
}

}  // namespace

int RunOnCluster(const RunOptions& options) {
  LetSignalsEnd();
  absl::StatusOr<Prepared> prepared = Prepare(options);
  if (!prepared.ok()) return PrintError(Message(prepared.status()), kExitUsage);
  Cluster* const cluster = prepared->cluster.get();
  const absl::Status allowed = CheckUser(&*prepared);
  if (!allowed.ok()) return PrintError(Message(allowed), CodeOf(allowed));
  const absl::StatusOr<JobLook> look = LookAt(cluster, prepared->job.spec.name);
  if (!look.ok()) return PrintError(Message(look.status()), CodeOf(look.status()));
  if (options.dry_run) return PrintPlan(options, *prepared, *look);
  const absl::Status made = SayIfNoNamespace(Make(options, *prepared, *look), *prepared);
  if (!made.ok()) return PrintError(Message(made), CodeOf(made));
  return Follow(options, *prepared);
}

}  // namespace muster::cluster
