#include "cli/cluster/job_look.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "cli/cluster/back_off.h"
#include "cli/cluster/event_words.h"
#include "cli/run/pod_run.h"
#include "cli/show/output.h"
#include "job/in_cluster.h"
#include "kubernetes/model/json_access.h"
#include "kubernetes/model/labels.h"
#include "kubernetes/model/pod_state.h"

namespace muster::cluster {
namespace {

using kubernetes::ConditionOf;
using kubernetes::ElementsAt;
using kubernetes::PodStage;
using kubernetes::PodState;
using kubernetes::TextAt;
using kubernetes::ValueAt;
using nlohmann::json;

constexpr char kContainer[] = "muster";
constexpr size_t kReasonBytesMax = 500;
constexpr char kStuckAdvice[] =
    "It stays so until somebody changes it: `kubectl delete job {}`, in its namespace, takes it "
    "away, and its state stays";
/// Events of a claim that are no sign of trouble.
constexpr std::string_view kOrdinaryEvents[] = {"WaitForFirstConsumer", "ExternalProvisioning",
                                                "Provisioning", "ProvisioningSucceeded",
                                                "WaitForPodScheduled"};

bool IsOver(const json& pod) {
  const std::string phase = TextAt(pod, {"status", "phase"});
  return phase == "Failed" || phase == "Succeeded";
}

/// The newest pod among those that are not over. If all are over, the newest of all.
const json* NewestOf(const std::vector<json>& pods) {
  const auto rank = [](const json& pod) {
    return std::pair(!IsOver(pod), TextAt(pod, {"metadata", "creationTimestamp"}));
  };
  const auto newest = std::ranges::max_element(pods, {}, rank);
  return newest == pods.end() ? nullptr : &*newest;
}

/// The newest pod that is over. The pod `other_than` does not count.
const json* NewestOver(const std::vector<json>& pods, std::string_view other_than) {
  const json* newest = nullptr;
  const auto created = [](const json& pod) {
    return TextAt(pod, {"metadata", "creationTimestamp"});
  };
  for (const json& pod : pods) {
    if (!IsOver(pod) || TextAt(pod, {"metadata", "name"}) == other_than) continue;
    if (newest == nullptr || created(*newest) < created(pod)) newest = &pod;
  }
  return newest;
}

std::string ReasonIn(const json& termination) {
  return Excerpt(Printable(TextAt(termination, {"reason"})), kReasonBytesMax);
}

/// True for the exit codes with which a shell or the container runtime says that a program is
/// missing or cannot be started.
bool CannotStart(const PodState& state) {
  return state.exit_code && *state.exit_code >= 126 && *state.exit_code <= 128;
}

/// Says in plain words what a pod of the job does while it cannot be asked.
std::string WordsOf(const json& pod, PodState state) {
  const json termination = TerminationOf(pod);
  if (termination.is_object()) {
    state.message = ReasonIn(termination);
    state.reason.clear();
  }
  std::string words = Describe(state);
  if (state.stage == PodStage::kFailed && CannotStart(state)) {
    words += "; is the program `muster` in the image?";
  }
  return Printable(words);
}

/// Reads from the pod's termination message how its run ended.
void ReadEnd(const json& pod, JobLook* look) {
  const PodState state = kubernetes::ReadPodState(pod, kContainer);
  look->exit_code = state.exit_code;
  const json termination = TerminationOf(pod);
  if (termination.is_object()) {
    look->outcome = Printable(TextAt(termination, {"outcome"}));
    look->why = ReasonIn(termination);
    return;
  }
  if (!state.exit_code) look->why = Describe(state);
}

void ReadPod(const json& pod, JobLook* look) {
  const PodState state = kubernetes::ReadPodState(pod, kContainer);
  look->pod = state.name;
  if (state.stage == PodStage::kRunning && !state.being_deleted) {
    look->stage = JobStage::kRunning;
    return;
  }
  look->stage = JobStage::kPending;
  look->is_stuck = state.stage == PodStage::kImageError || state.stage == PodStage::kConfigError;
  look->why = WordsOf(pod, state);
}

}  // namespace

JobLook ReadJobLook(const json& job, const std::vector<json>& pods) {
  JobLook look;
  if (!job.is_object()) return look;
  look.uid = TextAt(job, {"metadata", "uid"});
  look.file_digest = TextAt(job, {"metadata", "annotations", kubernetes::kFileAnnotation});
  const json* const pod = NewestOf(pods);
  if (ValueAt(job, {"metadata", "deletionTimestamp"}).is_string()) {
    look.stage = JobStage::kDeleted;
    return look;
  }
  const bool is_complete = ConditionOf(job, "Complete").is_object();
  const json& failed = ConditionOf(job, "Failed");
  if (is_complete || failed.is_object()) {
    look.stage = JobStage::kEnded;
    if (pod != nullptr) {
      look.pod = kubernetes::IdentityOf(*pod).name;
      ReadEnd(*pod, &look);
    }
    if (look.outcome.empty()) look.outcome = is_complete ? "succeeded" : "failed";
    if (look.why.empty() && !is_complete) look.why = Printable(TextAt(failed, {"message"}));
    return look;
  }
  look.stage = JobStage::kWaiting;
  if (ValueAt(job, {"spec", "suspend"}) == true) {
    look.why = "it is suspended: a queue holds it back";
    return look;
  }
  if (pod == nullptr) {
    const bool died = kubernetes::IntegerAt(job, {"status", "failed"}, 0) > 0;
    look.why = died ? fmt::format("it has no pod now. {}", NextStart(job, pods))
                    : "it has no pod now; Kubernetes makes one";
    return look;
  }
  ReadPod(*pod, &look);
  if (IsOver(*pod)) look.why += fmt::format(". {}", NextStart(job, pods));
  if (const json* former = NewestOver(pods, look.pod)) {
    look.former = fmt::format("{}: {}", kubernetes::IdentityOf(*former).name,
                              WordsOf(*former, kubernetes::ReadPodState(*former, kContainer)));
  }
  return look;
}

JobLook LookOfJob(const std::string& uid, JobLook look) {
  if (look.stage == JobStage::kAbsent || look.uid == uid) return look;
  return {.stage = JobStage::kReplaced, .uid = uid};
}

std::vector<std::string> ClaimsOf(const json& pod) {
  std::vector<std::string> names;
  for (const json& volume : ElementsAt(pod, {"spec", "volumes"})) {
    std::string name = TextAt(volume, {"persistentVolumeClaim", "claimName"});
    if (!name.empty()) names.push_back(std::move(name));
  }
  return names;
}

std::string UnboundClaim(const json& claim, const std::vector<json>& events) {
  if (TextAt(claim, {"status", "phase"}) != "Pending") return "";
  const std::string name = TextAt(claim, {"metadata", "name"});
  const json* newest = nullptr;
  for (const json& event : events) {
    if (TextAt(event, {"involvedObject", "kind"}) != "PersistentVolumeClaim") continue;
    if (TextAt(event, {"involvedObject", "name"}) != name) continue;
    if (std::ranges::count(kOrdinaryEvents, TextAt(event, {"reason"})) != 0) continue;
    if (newest == nullptr || TimeOf(*newest) <= TimeOf(event)) newest = &event;
  }
  if (newest == nullptr) return "";
  return Printable(fmt::format("the claim {} gets no volume: {}", name,
                               Excerpt(TextAt(*newest, {"message"}), kReasonBytesMax)));
}

std::string Describe(const JobLook& look) {
  switch (look.stage) {
    case JobStage::kAbsent:
      return "not there";
    case JobStage::kWaiting:
      return fmt::format("waiting: {}", look.why);
    case JobStage::kPending:
      return look.why;
    case JobStage::kRunning:
      return "running";
    case JobStage::kDeleted:
      return "being deleted";
    case JobStage::kReplaced:
      return "replaced by another job of its name";
    case JobStage::kEnded:
      break;
  }
  std::string text = fmt::format("ended: {}", look.outcome);
  if (look.exit_code) text += fmt::format(" (exit code {})", *look.exit_code);
  if (!look.why.empty()) text += fmt::format(": {}", look.why);
  return text;
}

std::string DeleteCommand(const std::string& ns, const std::string& job) {
  return fmt::format("kubectl --namespace {} delete job {}", ns, job);
}

absl::Status NoSecret(const std::string& ns, const std::string& job) {
  return absl::NotFoundError(fmt::format(
      "the Secret {} is not there, which has the keys with which one asks the job. A `muster run` "
      "that still follows the job puts it back. Otherwise take the job away (`{}`; its state "
      "stays), and run it again: then it gets new keys",
      InClusterNames(job).muster, DeleteCommand(ns, job)));
}

absl::Status CheckRuns(const std::string& job, const std::string& where, const JobLook& look) {
  switch (look.stage) {
    case JobStage::kRunning:
      return absl::OkStatus();
    case JobStage::kAbsent:
      return absl::NotFoundError(fmt::format(
          "there is no job {} in {}. Start it with `muster run JOB.yaml --on kubernetes`, or name "
          "another --namespace or --context; `muster list --on kubernetes` shows what is there",
          job, where));
    case JobStage::kWaiting:
    case JobStage::kPending:
      return absl::UnavailableError(
          fmt::format("the job {} in {} does not run now: {}. {}", job, where, look.why,
                      look.is_stuck ? fmt::format(kStuckAdvice, job) : "Try again later"));
    case JobStage::kDeleted:
      return absl::NotFoundError(fmt::format("the job {} in {} is being deleted", job, where));
    case JobStage::kReplaced:
      return absl::NotFoundError(
          fmt::format("the job {} in {} was {}", job, where, Describe(look)));
    case JobStage::kEnded:
      break;
  }
  const std::string_view next = look.outcome == "succeeded"
                                    ? "`muster export` brings its weights here"
                                    : "`muster run JOB.yaml --on kubernetes` continues it";
  return absl::NotFoundError(
      fmt::format("the job {} in {} has {}. {}; `muster logs --job {} --on kubernetes` shows what "
                  "it said, with its summary",
                  job, where, Describe(look), next, job));
}

int ExitCodeOf(const JobLook& look) {
  if (look.exit_code) return *look.exit_code;
  return look.outcome == "succeeded" ? kExitSucceeded : kExitFailed;
}

}  // namespace muster::cluster
