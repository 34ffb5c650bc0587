#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/state/state_directory.h"
#include "job/file/load_job.h"
#include "kubernetes/model/job_rights.h"

/// What `muster run`, the master and the scaler do differently in the job's own pod on Kubernetes.
namespace muster {

/// Calls LoadJob. If `ns` (the namespace of the job) is set, it also calls PutInCluster.
absl::StatusOr<LoadedJob> LoadJobIn(const std::string& ns, const std::string& path,
                                    const std::string& base_directory);

/// Copies the job's token from `mounted` into the state directory, where master, scaler and verbs
/// look for it. Errors: the file is missing, or it is not a token.
absl::Status TakeToken(const StateDirectory& state, const std::string& mounted);

/// kUnavailable unless the file at `mounted`, beside the job file, contains the digest `expected`.
/// If two `muster run` of one name come at the same moment, the Job of one may get the ConfigMap of
/// the other. OK if nothing is expected.
absl::Status CheckJobFile(const std::string& expected, const std::string& mounted);

/// PermissionDenied names all RightsOfJob() that the service account of the job's pod lacks in
/// `ns`. Otherwise it returns the first error of a question. Pure if `may` is.
absl::Status CheckRightsOfJob(
    const std::string& ns,
    const std::function<absl::StatusOr<bool>(const kubernetes::Right&)>& may);

/// Asks until the answer is neither PermissionDenied nor Unauthenticated, because an API server
/// learns of a new account, token or Role only after a while. It gives up after some time. `pause`
/// waits kRightsPause. Returns the last answer. Pure if both functions are.
absl::Status AskWhileDenied(const std::function<absl::Status()>& ask,
                            const std::function<void()>& pause);
inline constexpr std::chrono::seconds kRightsPause{2};

/// The exit code of a run that could not begin. It is kExitUsage, with which the Job fails, or
/// kExitUnreachable if the error may pass, so that the Job tries again. Pure.
int RefusalInCluster(const absl::Status& why);

/// What Kubernetes stores about the end of the run in its pod.
struct PodEnd {
  std::string outcome;
  int exit_code = 0;
  std::string reason;
  /// True if the job made progress while the pod was there.
  bool progressed = false;
};
/// One JSON object of at most 4096 bytes, with the fields of PodEnd. Pure.
std::string TerminationMessage(const PodEnd& end);
/// The message that the run has left in the pod; null if it left none. Pure.
nlohmann::json TerminationOf(const nlohmann::json& pod);
/// The message of a pod that runs, after the job has made progress in it. If the pod is killed,
/// only this message tells of the progress. Pure.
std::string ProgressMessage();

/// The most pods of a run that may end by themselves in a row without progress of the job.
inline constexpr uint32_t kPodsInVainMax = 10;
/// Aborted if that many have ended so, with the reason of the newest one. `pods` are those of the
/// job. The pods of the run belong to the Job with the UID `run`. A pod does not count if it was
/// preempted, evicted, deleted, told to leave, refused by its machine, or lost together with it.
/// Pure.
absl::Status CheckPodsInVain(const std::vector<nlohmann::json>& pods, const std::string& run);

/// Writes the file of the termination message. Only this file is mounted into the container, so it
/// is written in place and cannot be replaced. Errors are reported on stderr. Does nothing if
/// `path` is "".
void WriteTerminationLog(const std::string& path, std::string_view text);

}  // namespace muster
