#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

/// What a job's objects on Kubernetes say about it. Pure, thread-safe functions.
namespace muster::cluster {

enum class JobStage {
  kAbsent,
  /// A queue holds it back (spec.suspend), or it has no pod yet.
  kWaiting,
  /// Its pod does not run yet. `why` says what the pod waits for.
  kPending,
  kRunning,
  /// The Job is over. `outcome` and `exit_code` say how it ended.
  kEnded,
  /// Somebody is deleting it.
  kDeleted,
  /// Somebody deleted it and made another one of the same name.
  kReplaced,
};

/// The result of one look at a job.
struct JobLook {
  JobStage stage = JobStage::kAbsent;
  std::string uid;
  /// The digest of what the job was made from (kubernetes::FileDigestOf). Empty if an older muster
  /// made it.
  std::string file_digest;
  /// The newest pod of master and scaler; empty if there is none. The job can be asked only while
  /// it runs.
  std::string pod;
  /// The pod before `pod`, if Kubernetes still has it, and how that one ended: "ads-a: failed:
  /// ...".
  std::string former;
  /// Says in plain words what the job waits for, or why it ended. May be empty.
  std::string why;
  /// The image is not available, or the container cannot be made. This stays so until a person
  /// acts.
  bool is_stuck = false;
  /// Only for kEnded: the word of the run ("succeeded", "drained"), or else "succeeded" or
  /// "failed".
  std::string outcome;
  /// The exit code of the pod's run, if it is known.
  std::optional<int> exit_code;
};

/// `job` is the Job, or null. `pods` are those with the job's label and the role of the master, in
/// any order.
JobLook ReadJobLook(const nlohmann::json& job, const std::vector<nlohmann::json>& pods);

/// What `look` says about the Job with this UID. It is kReplaced if `look` is about another Job.
JobLook LookOfJob(const std::string& uid, JobLook look);

/// The names of the claims that the pod mounts.
std::vector<std::string> ClaimsOf(const nlohmann::json& pod);

/// "the claim flights-state gets no volume: ...", with the newest event that is a sign of trouble.
/// Empty if the claim has a volume, or if there is no such event. `events` may be any of the
/// claim's namespace.
std::string UnboundClaim(const nlohmann::json& claim, const std::vector<nlohmann::json>& events);

/// One line: "pending: 0/3 nodes are available", "ended: failed (exit code 1): ...".
std::string Describe(const JobLook& look);

/// The command that deletes a Job with its pods. The state stays.
std::string DeleteCommand(const std::string& ns, const std::string& job);

/// The error if the Secret NAME-muster is gone, because nobody can ask such a job: kNotFound, with
/// what helps.
absl::Status NoSecret(const std::string& ns, const std::string& job);

/// OK if the job runs. Otherwise the error says why a verb cannot ask it, and what to do. `where`
/// is Cluster::Where().
absl::Status CheckRuns(const std::string& job, const std::string& where, const JobLook& look);

/// The exit code of `muster run` for a job that ended like this: that of the pod, or else one that
/// fits the outcome.
int ExitCodeOf(const JobLook& look);

}  // namespace muster::cluster
