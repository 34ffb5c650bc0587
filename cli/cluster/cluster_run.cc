#include "cli/cluster/cluster_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
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
#include "cli/cluster/object_keeper.h"
#include "cli/cluster/rights.h"
#include "cli/show/output.h"
#include "job/in_cluster.h"
#include "kubernetes/manifests/objects.h"
#include "kubernetes/model/api_error.h"
#include "kubernetes/model/json_access.h"
#include "proto/fields/json.h"

namespace muster::cluster {
namespace {

constexpr uint64_t kJobFileBytesMax = 1 << 20;
/// It stays this long for people who read its log or ask how it ended.
constexpr std::chrono::hours kEndedJobStays{7 * 24};

/// From here until the job is followed, Ctrl-C ends the command at once.
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
  std::string text = options.job_text;
  if (text.empty()) {
    MUSTER_ASSIGN_OR_RETURN(text, ReadFile(options.job_file, kJobFileBytesMax));
  }
  kubernetes::ManifestFlags flags{.ns = options.cluster.ns, .image = options.image};
  MUSTER_ASSIGN_OR_RETURN(kubernetes::ManifestJob job,
                          kubernetes::ReadManifestJob(text, options.job_file, flags));
  const std::string named =
      options.cluster.ns.empty() ? job.spec.kubernetes.ns : options.cluster.ns;
  MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<Cluster> cluster, Cluster::Open(options.cluster, named));
  job.options.ns = cluster->ns();
  return Prepared{std::move(job), std::move(cluster)};
}

/// OK if the user has all necessary rights. If an optional right is missing, it is left out of the
/// job's Role, too.
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

/// The objects of the job, with two things that the job file does not have. `--retry-failed` is for
/// this one Job. And Kubernetes deletes the Job, with its remaining pods, some time after its end.
/// Manifests that other programs apply do not have the latter, because those programs would then
/// make the Job again.
std::vector<nlohmann::json> ObjectsFor(const RunOptions& options,
                                       const kubernetes::ManifestJob& job) {
  std::vector<nlohmann::json> objects = kubernetes::ObjectsOf(job.spec, job.options);
  for (nlohmann::json& object : objects) {
    if (kubernetes::TextAt(object, {"kind"}) != "Job") continue;
    object["spec"]["ttlSecondsAfterFinished"] = std::chrono::seconds(kEndedJobStays).count();
    if (!options.retry_failed) continue;
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

/// True if the present job was made from another job file or image than this one.
bool HasOtherJobFile(const Prepared& prepared, const JobLook& look) {
  const kubernetes::ManifestOptions& options = prepared.job.options;
  if (!look.file_digest.empty()) return look.file_digest != kubernetes::FileDigestOf(options);
  // An older muster, whose pod templates may differ, made the job. So only the job files are
  // compared.
  const absl::StatusOr<nlohmann::json> present =
      prepared.cluster->client().Get({.resource = kubernetes::Resource::kConfigMaps,
                                      .ns = prepared.cluster->ns(),
                                      .name = InClusterNames(prepared.job.spec.name).muster});
  return present.ok() && kubernetes::TextAt(*present, {"data", "job.yaml"}) != options.job_file;
}

/// The command that ends a living job. Its state stays.
std::string EndCommand(const std::string& name, const ClusterTarget& target, const JobLook& look) {
  return look.stage == JobStage::kRunning ? fmt::format("muster drain {}", OptionsFor(name, target))
                                          : DeleteCommand(target.ns, name);
}

absl::Status RefuseOther(const RunOptions& options, const Prepared& prepared, const JobLook& look) {
  const std::string& name = prepared.job.spec.name;
  ClusterTarget target = options.cluster;
  target.ns = prepared.cluster->ns();
  return absl::FailedPreconditionError(fmt::format(
      "a job {0} is there already ({1}), and was made from another job file or image than this "
      "one; nothing was changed. `muster status {2}` shows it. Give this job another "
      "metadata.name, "
      "or end that one first (`{3}`; its state stays)",
      name, Describe(look), OptionsFor(name, target), EndCommand(name, target, look)));
}

/// Tells the user that the job lives, and what happens now.
void SayItLives(const RunOptions& options, const Prepared& prepared, const JobLook& look) {
  const std::string& name = prepared.job.spec.name;
  ClusterTarget target = options.cluster;
  target.ns = prepared.cluster->ns();
  PrintNote(fmt::format(
      "the job {} is there already ({}), and is left as it is. To change it, end it first (`{}`; "
      "its state stays), and then run it again",
      name, Describe(look), EndCommand(name, target, look)));
  if (options.retry_failed) {
    PrintNote(fmt::format(
        "--retry-failed is for a new start; {}`muster shards {} --retry` tries FAILED shards again",
        look.stage == JobStage::kRunning ? "" : "as soon as the job runs, ",
        OptionsFor(name, target)));
  }
}

bool Lives(const JobLook& look) {
  return look.stage == JobStage::kWaiting || look.stage == JobStage::kPending ||
         look.stage == JobStage::kRunning;
}

/// Somebody else has made the Job meanwhile. Returns its UID if it was made from the same file.
absl::StatusOr<std::string> TakeOver(const RunOptions& options, const Prepared& prepared) {
  const std::string& name = prepared.job.spec.name;
  MUSTER_ASSIGN_OR_RETURN(const JobLook look, LookAt(prepared.cluster.get(), name));
  if (look.stage == JobStage::kAbsent) {
    return absl::AbortedError(fmt::format(
        "somebody else made the job {} at the same time, and took it away; run it again", name));
  }
  if (HasOtherJobFile(prepared, look)) return RefuseOther(options, prepared, look);
  SayItLives(options, prepared, look);
  return look.uid;
}

/// Another `muster run` that was slower with the Job may have replaced our ConfigMap with that of
/// its own file. So this puts ours back.
absl::Status ApplyOwnConfig(Cluster* cluster, const std::vector<nlohmann::json>& objects) {
  for (const nlohmann::json& object : objects) {
    if (kubernetes::TextAt(object, {"kind"}) != "ConfigMap") continue;
    const absl::StatusOr<nlohmann::json> present =
        cluster->client().Get({.resource = kubernetes::Resource::kConfigMaps,
                               .ns = cluster->ns(),
                               .name = kubernetes::IdentityOf(object).name});
    if (present.ok() && kubernetes::ValueAt(*present, {"data"}) == object.at("data")) continue;
    MUSTER_RETURN_IF_ERROR(ApplyObjects(cluster, {object}));
  }
  return absl::OkStatus();
}

/// Makes what the job needs, and returns the UID of the Job to follow. If the job lives, it only
/// renews certificates.
absl::StatusOr<std::string> Make(const RunOptions& options, const Prepared& prepared,
                                 const JobLook& look) {
  const std::string& name = prepared.job.spec.name;
  Cluster* const cluster = prepared.cluster.get();
  if (Lives(look) && HasOtherJobFile(prepared, look)) return RefuseOther(options, prepared, look);
  const absl::Status secrets = EnsureSecrets(cluster, prepared.job, look.stage, PrintNote);
  if (Lives(look)) {
    // Following the job needs no new certificates.
    if (!secrets.ok()) PrintNote(fmt::format("certificates: not renewed: {}", Message(secrets)));
    SayItLives(options, prepared, look);
    return look.uid;
  }
  MUSTER_RETURN_IF_ERROR(secrets);
  const std::vector<nlohmann::json> objects = ObjectsFor(options, prepared.job);
  MUSTER_RETURN_IF_ERROR(ApplyObjects(cluster, objects));
  if (look.stage != JobStage::kAbsent) {
    MUSTER_RETURN_IF_ERROR(DeleteEndedJob(cluster, name, look, PrintNote));
  }
  absl::StatusOr<std::string> made = CreateJob(cluster, objects);
  if (!made.ok() && kubernetes::KindOf(made.status()) == kubernetes::ApiErrorKind::kAlreadyExists) {
    return TakeOver(options, prepared);
  }
  if (made.ok()) MUSTER_RETURN_IF_ERROR(ApplyOwnConfig(cluster, objects));
  if (made.ok() && !options.detach) {
    PrintNote(fmt::format("the job {} is made in {}", name, cluster->Where()));
  }
  return made;
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

/// `uid` is that of the Job that was made or taken over.
int Follow(const RunOptions& options, const Prepared& prepared, const std::string& uid) {
  const std::string& name = prepared.job.spec.name;
  ClusterTarget target = options.cluster;
  target.ns = prepared.cluster->ns();
  const std::string asks = OptionsFor(name, target);
  ObjectKeeper keeper(prepared.cluster.get(), name, ObjectsFor(options, prepared.job));
  keeper.PutBack();
  for (const std::string& note : keeper.TakeNotes()) PrintNote(note);
  if (options.detach) {
    PrintNote(fmt::format("the job {} is started in {}; `muster status {}` shows it", name,
                          prepared.cluster->Where(), asks));
    return kExitSucceeded;
  }
  absl::StatusOr<JobLook> look = LookAt(prepared.cluster.get(), name);
  if (!look.ok()) return PrintError(Message(look.status()), CodeOf(look.status()));
  look = LookOfJob(uid, *std::move(look));
  if (look->stage == JobStage::kAbsent || look->stage == JobStage::kReplaced) {
    return PrintError(NewsOf({.stage = JobStage::kWaiting}, *look, asks, ""), kExitFailed);
  }
  const int signal_fd = BlockSignals();
  const absl::Cleanup close_signals = [signal_fd] { ::close(signal_fd); };
  const absl::StatusOr<std::unique_ptr<JobLink>> link = JobLink::Open(
      prepared.cluster.get(), name, *look, [&keeper](const JobLook& now) { keeper.OnLook(now); });
  if (!link.ok()) return PrintError(Message(link.status()), CodeOf(link.status()));
  return Follower(prepared.cluster.get(), link->get(),
                  {.spec = prepared.job.spec,
                   .asks = asks,
                   .progress = options.progress ? ProgressDisplay::ModeOf(STDERR_FILENO)
                                                : ProgressDisplay::Mode::kOff,
                   .output = options.output,
                   .keeper = &keeper,
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
  const absl::StatusOr<std::string> made = Make(options, *prepared, *look);
  if (!made.ok()) {
    return PrintError(Message(SayIfNoNamespace(made.status(), *prepared)), CodeOf(made.status()));
  }
  return Follow(options, *prepared, *made);
}

}  // namespace muster::cluster
