#include "cli/run/pod_run.h"

#include <fcntl.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "base/descriptors.h"
#include "base/file.h"
#include "base/status.h"
#include "base/text.h"
#include "base/token_file.h"
#include "base/words/exit_codes.h"
#include "cli/run/pod_environment.h"
#include "cli/run/run_supervisor.h"
#include "cli/show/output.h"
#include "job/in_cluster.h"
#include "kubernetes/model/json_access.h"
#include "kubernetes/model/pod_state.h"
#include "kubernetes/pods/pod_facts.h"
#include "proto/fields/json.h"

namespace muster {
namespace {

constexpr uint64_t kTokenFileMax = 4'096;
constexpr uint64_t kDigestFileMax = 4'096;
constexpr size_t kTerminationMax = 4'096;
constexpr size_t kReasonStep = 128;
constexpr std::chrono::seconds kDeniedMax{60};

/// An earlier pod of the run. Its end says something about the job.
struct PastPod {
  std::string name;
  std::string created;  // in the format of Kubernetes, whose times sort as texts
  bool progressed = false;
  std::string reason;
};

/// None if the pod has not failed, or if its end says nothing about the job.
std::optional<PastPod> ReadPastPod(const nlohmann::json& pod) {
  const kubernetes::PodState state = kubernetes::ReadPodState(pod, kubernetes::kNodeContainer);
  if (state.stage != kubernetes::PodStage::kFailed) return std::nullopt;
  const nlohmann::json message = TerminationOf(pod);
  PastPod past{.name = state.name,
               .created = kubernetes::TextAt(pod, {"metadata", "creationTimestamp"}),
               .progressed = kubernetes::ValueAt(message, {"progressed"}) == true,
               .reason = Printable(kubernetes::TextAt(message, {"reason"}))};
  if (past.progressed) return past;
  const bool ran = state.exit_code.has_value();
  const bool taken = state.disruption != Disruption::kNone || state.being_deleted;
  const bool gave_way = state.exit_code == kLeftExit || state.exit_code == kTakenOverExit;
  if (!ran || taken || gave_way) return std::nullopt;
  if (past.reason.empty()) past.reason = Printable(Describe(state));
  return past;
}

}  // namespace

absl::StatusOr<LoadedJob> LoadJobIn(const std::string& ns, const std::string& path,
                                    const std::string& base_directory) {
  MUSTER_ASSIGN_OR_RETURN(LoadedJob job, LoadJob(path, base_directory));
  if (!ns.empty()) {
    PutInCluster(ns, ReadEnvironment(kPodAddressVariable).value_or(""), &job.spec);
  }
  return job;
}

absl::Status TakeToken(const StateDirectory& state, const std::string& mounted) {
  MUSTER_ASSIGN_OR_RETURN(const std::string token, ReadFile(mounted, kTokenFileMax));
  MUSTER_RETURN_IF_ERROR(MakeDirectories(state.scaler()));
  MUSTER_RETURN_IF_ERROR(WriteFileAtomically(state.token(), token, FileAccess::kOwnerOnly));
  MUSTER_RETURN_IF_ERROR_PREPEND(LoadToken(state.token()).status(),
                                 fmt::format("the copy of {}", mounted));
  return absl::OkStatus();
}

absl::Status CheckJobFile(const std::string& expected, const std::string& mounted) {
  if (expected.empty()) return absl::OkStatus();
  const absl::StatusOr<std::string> digest = ReadFile(mounted, kDigestFileMax);
  if (digest.ok() && *digest == expected) return absl::OkStatus();
  return absl::UnavailableError(
      "the job file in the ConfigMap is not that of this Job: another `muster run` of this name, "
      "with another file, came in between. `muster run --on kubernetes` of this Job's file puts it "
      "back");
}

absl::Status CheckRightsOfJob(
    const std::string& ns,
    const std::function<absl::StatusOr<bool>(const kubernetes::Right&)>& may) {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<std::string> missing,
                          kubernetes::MissingOf(kubernetes::RightsOfJob(), may));
  if (missing.empty()) return absl::OkStatus();
  return absl::PermissionDeniedError(fmt::format(
      "the service account of this pod lacks rights in the namespace {}: {}. `muster manifests` "
      "prints a Role that has them",
      ns, fmt::join(missing, ", ")));
}

absl::Status AskWhileDenied(const std::function<absl::Status()>& ask,
                            const std::function<void()>& pause) {
  absl::Status answer = ask();
  for (auto waited = kDeniedMax.zero(); waited < kDeniedMax; waited += kRightsPause) {
    if (!absl::IsPermissionDenied(answer) && !absl::IsUnauthenticated(answer)) return answer;
    if (waited == kDeniedMax.zero()) PrintNote(fmt::format("asking again: {}", Message(answer)));
    pause();
    answer = ask();
  }
  return answer;
}

int RefusalInCluster(const absl::Status& why) {
  switch (why.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kUnknown:
    case absl::StatusCode::kUnauthenticated:  // the token may be in renewal
      return kExitUnreachable;
    default:
      return kExitUsage;
  }
}

std::string TerminationMessage(const PodEnd& end) {
  nlohmann::json json = {
      {"outcome", end.outcome}, {"exit_code", end.exit_code}, {"progressed", end.progressed}};
  // JSON may need six bytes for one byte of text, so the text is cut until the message fits.
  for (size_t bytes = kTerminationMax;; bytes -= kReasonStep) {
    json["reason"] = end.reason.substr(0, bytes);
    std::string text = JsonText(json) + "\n";
    if (text.size() <= kTerminationMax || bytes == 0) return text;
  }
}

nlohmann::json TerminationOf(const nlohmann::json& pod) {
  const nlohmann::json& status = kubernetes::ContainerStatusOf(pod, kubernetes::kNodeContainer);
  absl::StatusOr<nlohmann::json> message =
      kubernetes::ParseJson(kubernetes::TextAt(status, {"state", "terminated", "message"}));
  return message.ok() && message->is_object() ? *std::move(message) : nlohmann::json();
}

std::string ProgressMessage() {
  return TerminationMessage({.outcome = "killed",
                             .exit_code = 128 + SIGKILL,
                             .reason = "its pod was killed",
                             .progressed = true});
}

absl::Status CheckPodsInVain(const std::vector<nlohmann::json>& pods, const std::string& run) {
  std::vector<PastPod> past;
  for (const nlohmann::json& pod : pods) {
    if (!kubernetes::IsOwnedBy(pod, run)) continue;
    if (std::optional<PastPod> one = ReadPastPod(pod)) past.push_back(*std::move(one));
  }
  std::ranges::sort(past, std::greater(), &PastPod::created);
  const auto progressed = std::ranges::find(past, true, &PastPod::progressed);
  const auto in_vain = progressed - past.begin();
  if (in_vain < kPodsInVainMax) return absl::OkStatus();
  return absl::AbortedError(
      fmt::format("{} pods in a row have ended without progress of the job; the newest, {}: {}",
                  in_vain, past.front().name, past.front().reason));
}

void WriteTerminationLog(const std::string& path, std::string_view text) {
  if (path.empty()) return;
  const OwnedFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  const bool written = file.get() >= 0 && ::write(file.get(), text.data(), text.size()) ==
                                              static_cast<ssize_t>(text.size());
  if (!written) PrintNote(Message(ErrnoStatus(errno, fmt::format("cannot write {}", path))));
}

}  // namespace muster
