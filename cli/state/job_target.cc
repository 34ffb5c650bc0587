#include "cli/state/job_target.h"

#include <filesystem>

#include "base/status.h"
#include "cli/state/running_jobs.h"

namespace muster {
namespace {

constexpr char kDefaultJobFile[] = "job.yaml";

}  // namespace

absl::Status CheckSameJob(const LoadedJob& job, const StateDirectory& state) {
  // Without a journal, no field is fixed yet.
  if (!std::filesystem::exists(state.journal())) return absl::OkStatus();
  absl::StatusOr<LoadedJob> former = LoadJob(state.job_copy(), job.base_directory);
  if (!former.ok()) return absl::OkStatus();  // the journal itself will be checked
  const std::string advice = fmt::format(
      "Choose another spec.stateDirectory for the new job, put the former value back to resume the "
      "old job, or delete {} if you do not need its weights",
      state.path());
  if (former->spec.name != job.spec.name) {
    return absl::FailedPreconditionError(
        fmt::format("the state directory {} belongs to the job '{}', not to '{}'. {}", state.path(),
                    former->spec.name, job.spec.name, advice));
  }
  const auto now = FixedFields(job.spec);
  std::string changes;
  for (const auto& [field, value] : FixedFields(former->spec)) {
    std::string other = "(gone)";
    for (const auto& [name, new_value] : now) {
      if (name == field) other = new_value;
    }
    if (other != value) changes += fmt::format("\n  {}: was {}, is now {}", field, value, other);
  }
  if (changes.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      fmt::format("the job '{}' cannot be resumed from {}: these fields may not change:{}\n{}",
                  job.spec.name, state.path(), changes, advice));
}

std::string JobFileOf(const JobTarget& target) {
  return target.job_file.empty() ? kDefaultJobFile : target.job_file;
}

absl::Status SayWhereLooked(const absl::Status& error, const JobTarget& target) {
  if (!absl::IsNotFound(error)) return error;
  if (!target.linked_job.empty()) {
    return absl::NotFoundError(fmt::format("{} does not run any more", target.linked_job));
  }
  std::string looked;
  if (target.state_directory.empty()) {
    looked = target.job_file.empty()
                 ? fmt::format(". The job file is ./{}, because the command names no other",
                               kDefaultJobFile)
                 : fmt::format(". The job file is {}", target.job_file);
    const absl::StatusOr<LoadedJob> job = LoadJob(JobFileOf(target), "");
    if (job.ok() && !job->spec.kubernetes.image.empty()) {
      looked += ", which has spec.kubernetes: of a job on a cluster, say --on kubernetes";
    }
  }
  return absl::NotFoundError(
      fmt::format("{}{}. {}", Message(error), looked, RunningJobsText(FindRunningJobs())));
}

absl::StatusOr<StateDirectory> FindStateDirectory(const JobTarget& target) {
  if (!target.state_directory.empty()) return StateDirectory(target.state_directory);
  const std::string file = JobFileOf(target);
  if (target.job_file.empty() && !std::filesystem::exists(file)) {
    return absl::InvalidArgumentError(fmt::format(
        "there is no ./job.yaml; name the job's file (muster status job.yaml) or its state "
        "directory (--state-dir DIR). {}",
        RunningJobsText(FindRunningJobs())));
  }
  MUSTER_ASSIGN_OR_RETURN(const LoadedJob job, LoadJob(file, ""));
  return StateDirectory(job.spec.state_directory);
}

}  // namespace muster
