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

/// LoadJob, and with `ns` (the namespace of the job): PutInCluster.
absl::StatusOr<LoadedJob> LoadJobIn(const std::string& ns, const std::string& path,
                                    const std::string& base_directory);

/// Puts a copy of the job's token, which is mounted at `mounted`, into the state directory, so that
/// master, scaler and verbs find it where they find it elsewhere. Errors: it is not there, or it is
/// no token.
absl::Status TakeToken(const StateDirectory& state, const std::string& mounted);

/// kUnavailable unless the file at `mounted`, beside the job file, has the digest `expected`: two
/// `muster run` of one name at the same moment may leave the ConfigMap of the one to the Job of the
/// other. OK if nothing is expected.
absl::Status CheckJobFile(const std::string& expected, const std::string& mounted);

/// PermissionDenied, with all RightsOfJob() that the service account of the job's pod lacks in
/// `ns`; or the first error of a question. Pure, if `may` is.
absl::Status CheckRightsOfJob(
    const std::string& ns,
    const std::function<absl::StatusOr<bool>(const kubernetes::Right&)>& may);

/// Asks until the answer is neither PermissionDenied nor Unauthenticated, but not for ever, because
/// API servers know of a new account, token or Role only after a while. `pause` waits
/// kRightsPause. The last answer. Pure, if both are.
absl::Status AskWhileDenied(const std::function<absl::Status()>& ask,
                            const std::function<void()>& pause);
inline constexpr std::chrono::seconds kRightsPause{2};

/// The exit code of a run that could not begin: kExitUsage, with which the Job fails, or
/// kExitUnreachable if the error may pass, so that the Job tries again. Pure.
int RefusalInCluster(const absl::Status& why);

/// What Kubernetes keeps of how the run ended in its pod.
struct PodEnd {
  std::string outcome;
  int exit_code = 0;
  std::string reason;
  /// The job was seen to advance while the pod was there.
  bool progressed = false;
};
/// One JSON object of at most 4096 bytes, with the fields of PodEnd. Pure.
std::string TerminationMessage(const PodEnd& end);
/// What the run in the pod has left so; a null if it left nothing. Pure.
nlohmann::json TerminationOf(const nlohmann::json& pod);
/// The message that stands while a pod runs in which the job has made progress: nothing else tells
/// of that if the pod is killed. Pure.
std::string ProgressMessage();

/// So many pods of a run in a row may end by themselves without progress of the job.
inline constexpr uint32_t kPodsInVainMax = 10;
/// Aborted if so many have, with the reason of the newest. `pods` are those of the job; the run's
/// own are owned by the Job with the UID `run`. A pod that was preempted, evicted, deleted, told to
/// leave, refused by its machine or lost with it does not count. Pure.
absl::Status CheckPodsInVain(const std::vector<nlohmann::json>& pods, const std::string& run);

/// Writes a file that is mounted into the container by itself; in place, because it cannot be
/// replaced. Errors are said on stderr. Nothing for path "".
void WriteTerminationLog(const std::string& path, std::string_view text);

}  // namespace muster
