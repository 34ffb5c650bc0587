#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

/// What the objects of a job on Kubernetes say about it. Pure, thread-safe functions.
namespace muster::cluster {

enum class JobStage {
  kAbsent,
  /// A queue holds it back (spec.suspend), or it has no pod yet.
  kWaiting,
  /// Its pod does not run yet; `why` says what it waits for.
  kPending,
  kRunning,
  /// The Job is over; `outcome` and `exit_code` say how.
  kEnded,
  /// Somebody deletes it.
  kDeleted,
  /// Somebody deleted it and made another one of the same name.
  kReplaced,
};

/// A look at a job.
struct JobLook {
  JobStage stage = JobStage::kAbsent;
  std::string uid;
  /// kubernetes::FileDigestOf what it was made from; empty: an older muster made it.
  std::string file_digest;
  /// The newest pod of master and scaler; empty: none. The job can be asked only while it runs.
  std::string pod;
  /// The pod before `pod`, if Kubernetes still has it, and how it ended: "ads-a: failed: ...".
  std::string former;
  /// In plain words, what it waits for, or why it ended; may be empty.
  std::string why;
  /// The image cannot be had, or the container cannot be made: without a person, it stays so.
  bool is_stuck = false;
  /// Of kEnded: the word of the run ("succeeded", "drained"), else "succeeded" or "failed".
  std::string outcome;
  /// Of the pod's run, if it is known.
  std::optional<int> exit_code;
};

/// `job`: the Job, or null. `pods`: those with the job's label and the role of the master, in any
/// order.
JobLook ReadJobLook(const nlohmann::json& job, const std::vector<nlohmann::json>& pods);

/// What `look` says about the Job with this UID: kReplaced if it is a look at another one.
JobLook LookOfJob(const std::string& uid, JobLook look);

/// The claims that the pod mounts.
std::vector<std::string> ClaimsOf(const nlohmann::json& pod);

/// "the claim flights-state gets no volume: ...", with the newest words of Kubernetes that are more
/// than its ordinary course. Empty: the claim has a volume, or nothing was said. `events`: any of
/// its namespace.
std::string UnboundClaim(const nlohmann::json& claim, const std::vector<nlohmann::json>& events);

/// In one line: "pending: 0/3 nodes are available", "ended: failed (exit code 1): ...".
std::string Describe(const JobLook& look);

/// The command that takes a Job away, with its pods. Its state stays.
std::string DeleteCommand(const std::string& ns, const std::string& job);

/// Nobody can ask a job whose Secret NAME-muster is gone: kNotFound, with what helps.
absl::Status NoSecret(const std::string& ns, const std::string& job);

/// OK if the job runs; otherwise why a verb cannot ask it, and what to do. `where`:
/// Cluster::Where().
absl::Status CheckRuns(const std::string& job, const std::string& where, const JobLook& look);

/// The exit code of `muster run` for a job that ended so: the pod's, else by the outcome.
int ExitCodeOf(const JobLook& look);

}  // namespace muster::cluster
