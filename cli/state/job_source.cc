#include "cli/state/job_source.h"

#include <filesystem>
#include <limits>
#include <utility>

#include "base/clock.h"
#include "base/status.h"
#include "cli/show/output.h"
#include "cli/state/job_target.h"
#include "cli/state/stored_job.h"

namespace muster {
namespace {

constexpr std::chrono::milliseconds kMasterDeadline{5'000};
// Within this time, a master that died is back, or its run is over.
constexpr std::chrono::milliseconds kAwayMax{5'000};
constexpr std::chrono::milliseconds kToldAfter{1'000};
constexpr std::chrono::milliseconds kAwayPause{50};

// Short, so that people soon see that a stopped master is being waited for.
constexpr std::chrono::milliseconds kProbeDeadline{1'000};

/// Finds the directory with the token, even if the master was named by its address.
absl::StatusOr<StateDirectory> FindTokensDirectory(const QueryOptions& options) {
  const JobTarget& target = options.target;
  const bool named = !target.job_file.empty() || !target.state_directory.empty();
  if (options.master.empty() || named || std::filesystem::exists(JobFileOf(target))) {
    return FindStateDirectory(target);
  }
  return absl::InvalidArgumentError(
      fmt::format("the master at {} requires the job's token, which is in the state directory. "
                  "Besides --master, name the job's file or its state directory (--state-dir DIR); "
                  "there is no ./{}",
                  options.master, JobFileOf(target)));
}

absl::StatusOr<std::unique_ptr<AdminClient>> Connect(const QueryOptions& options,
                                                     std::chrono::milliseconds deadline) {
  MUSTER_ASSIGN_OR_RETURN(const StateDirectory state, FindTokensDirectory(options));
  const absl::StatusOr<Endpoint> found = state.ReadEndpoint();
  if (options.master.empty() && !found.ok()) {
    return SayWhereLooked(found.status(), options.target);
  }
  Endpoint endpoint = found.value_or(Endpoint());
  if (!options.master.empty()) {
    endpoint.master = options.master;
    endpoint.job = {};
    // A copy of a state directory has certificates but no endpoint.
    std::error_code ignored;
    if (!found.ok() && std::filesystem::exists(state.certificates(), ignored)) {
      endpoint.certificates = state.certificates();
    }
  }
  return MakeAdminClient(OperatorTarget(state, endpoint), deadline, WhenAway::kFail);
}

bool Answers(AdminClient* client) {
  v1::ListEventsRequest nothing;
  nothing.set_after(std::numeric_limits<uint64_t>::max());
  return !IsUnreachable(client->ListEvents(nothing).status());
}

/// The same as ConnectToMaster, but if the job runs, it waits until the master answers or the job
/// ends. After kAwayMax it stops waiting; the caller's own call then says why there is no answer.
absl::StatusOr<std::unique_ptr<AdminClient>> ConnectToPresentMaster(const QueryOptions& options) {
  if (options.no_wait) return ConnectToMaster(options);
  const SystemClock clock;
  const TimePoint began = clock.Now();
  bool told = false;
  while (true) {
    const absl::StatusOr<std::unique_ptr<AdminClient>> probe = Connect(options, kProbeDeadline);
    const bool waits = probe.ok() && options.master.empty() && !Answers(probe->get());
    const auto away = clock.Now() - began;
    if (!waits || away >= kAwayMax) return ConnectToMaster(options);
    if (!told && away >= kToldAfter) {
      told = true;
      PrintNote("the job's master does not answer; waiting a few seconds for it");
    }
    SleepFor(kAwayPause);
  }
}

}  // namespace

MasterTarget OperatorTarget(const StateDirectory& state, const Endpoint& endpoint) {
  MasterTarget target{.address = endpoint.master, .job = endpoint.job, .token_file = state.token()};
  if (!endpoint.certificates.empty()) {
    target.tls = CredentialFilesOf(endpoint.certificates, Role::kOperator);
  }
  return target;
}

absl::StatusOr<std::unique_ptr<AdminClient>> ConnectToMaster(const QueryOptions& options) {
  return Connect(options, kMasterDeadline);
}

absl::StatusOr<JobSource> OpenStoredSource(const QueryOptions& options, const absl::Status& away) {
  absl::StatusOr<std::unique_ptr<AdminClient>> stored = OpenStoredJob(options.target);
  if (absl::IsNotFound(stored.status())) return away;
  // If the stored state cannot be read, that matters more than that no job runs.
  if (!stored.ok()) {
    return absl::Status(stored.status().code(),
                        fmt::format("{}; no job runs there", Message(stored.status())));
  }
  return JobSource{*std::move(stored), false};
}

absl::StatusOr<JobSource> FindJobSource(const QueryOptions& options) {
  absl::StatusOr<std::unique_ptr<AdminClient>> client = ConnectToPresentMaster(options);
  if (client.ok()) return JobSource{*std::move(client), true};
  if (!absl::IsNotFound(client.status())) return client.status();
  absl::StatusOr<JobSource> source = OpenStoredSource(options, client.status());
  if (source.ok()) {
    const bool by_file = options.target.state_directory.empty();
    PrintNote(fmt::format("the job is not running; these are the contents of its state directory{}",
                          by_file ? fmt::format(" (job file {})", JobFileOf(options.target)) : ""));
  }
  return source;
}

}  // namespace muster
