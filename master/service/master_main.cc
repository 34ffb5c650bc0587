#include "master/service/master_main.h"

#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "base/status.h"
#include "base/words/exit_codes.h"
#include "base/words/limits.h"
#include "master/journal/fenced_journal.h"
#include "master/service/epoch_end_options.h"
#include "master/service/master_server.h"
#include "master/service/snapshot_owner.h"
#include "master/sources/source_catalog.h"
#include "proto/messages/job_identity.h"

namespace muster {
namespace {

/// Blocks SIGTERM and SIGINT for this thread and those it starts, so that Wait can take them.
class StopSignals {
 public:
  StopSignals() {
    sigemptyset(&set_);
    sigaddset(&set_, SIGTERM);
    sigaddset(&set_, SIGINT);
    pthread_sigmask(SIG_BLOCK, &set_, &before_);
  }
  ~StopSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  /// Waits at most 100 ms; returns true if one of the signals came.
  bool Wait() {
    const timespec timeout{0, 100'000'000};
    return sigtimedwait(&set_, nullptr, &timeout) > 0;
  }

 private:
  sigset_t set_;
  sigset_t before_;
};

std::string RandomId() {
  std::random_device device;
  const auto word = [&device] { return uint64_t{device()} << 32 | device(); };
  return fmt::format("{:016x}{:016x}", word(), word());
}

void ShowProgress(const SourceProgress& progress) {
  Log(LogLevel::kInfo, "indexing dataset '{}': {} of {} bytes", progress.dataset,
      progress.bytes_done, progress.bytes_total);
}

/// `id` is the journal's; a version that wrote none takes ours.
absl::Status CheckId(const MasterOptions& options, const std::string& id) {
  if (options.job_id.empty() || id.empty() || id == options.job_id) return absl::OkStatus();
  return absl::FailedPreconditionError(
      fmt::format("the journal in {} belongs to the job with id {}, not {}: another job has taken "
                  "over the state directory. Give one of them another spec.stateDirectory",
                  options.job.state_directory, id, options.job_id));
}

}  // namespace

namespace {

std::optional<GroupOptions> GroupOptionsOf(const JobSpec& job) {
  if (!HasGroup(job)) return std::nullopt;
  GroupOptions group;
  group.global_batch = *job.group.global_batch;
  group.members_min = job.group.members_min;
  group.members_max = std::min(GroupMembersMax(job), most::kMembers);
  group.workers = job.worker.replicas;
  group.silence_limit = job.group.silence_limit;
  // A member is quiet for as long as a call of it is kept, at most, before it calls again.
  group.heartbeat_interval = std::min(group.heartbeat_interval, group.silence_limit / 4);
  group.join_wait = job.group.join_wait;
  group.checkpoint_interval = job.snapshot_interval;
  group.quotas = job.group.balance;
  return group;
}

}  // namespace

CoreOptions CoreOptionsOf(const MasterOptions& options, std::vector<DatasetPlan> datasets) {
  const JobSpec& job = options.job;
  CoreOptions core;
  core.datasets = std::move(datasets);
  core.partitions = job.partitions;
  core.servers = job.ps.replicas;
  core.servers_joined = job.servers_joined;
  core.run_id = options.run_id;
  core.snapshot_directory = job.snapshot_directory;
  core.retry_failed = options.retry_failed;
  core.snapshot_interval = job.snapshot_interval;
  core.restore_timeout = job.restore_timeout;
  core.leases = job.leases;
  core.server_times = job.servers;
  core.drain_timeout = job.drain_timeout;
  core.group = GroupOptionsOf(job);
  core.rejected_records_max = job.training.rejected_records_max;
  core.failed_shards_max = job.training.failed_shards_max;
  // It was checked before anything was started; a view of an old job shows the rest.
  core.epoch_ends = EpochEndOptionsOf(job).value_or(EpochEndOptions());
  core.evaluation = job.training.evaluation;
  core.planted_bugs = options.planted_bugs;
  return core;
}

absl::Status RunMaster(const MasterOptions& options) {
  const JobSpec& job = options.job;
  MUSTER_RETURN_IF_ERROR(
      CheckListening(options.listen_address, job.security, options.tls.has_value()));
  MUSTER_RETURN_IF_ERROR(CheckJobId("--job-id", options.job_id));
  MUSTER_RETURN_IF_ERROR(EpochEndOptionsOf(job).status());
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<SourceCatalog> catalog,
                          SourceCatalog::Open(job, ShowProgress, options.alive));
  // Not earlier, because indexing may take long, and a kill during it costs nothing.
  StopSignals signals;
  const JournalHeader header{job.name, FixedFields(job), catalog->Fingerprint(),
                             options.job_id.empty() ? RandomId() : options.job_id};
  // Checked before an empty journal replaces a missing one.
  const std::string journal_directory = job.state_directory + "/journal";
  const absl::StatusOr<JournalHeader> known = ReadFencedHeader(journal_directory);
  if (known.ok()) MUSTER_RETURN_IF_ERROR(CheckId(options, known->job_id));
  if (absl::IsNotFound(known.status())) {
    MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<ObjectStore> snapshots,
                            OpenStore(job.snapshot_directory));
    MUSTER_RETURN_IF_ERROR(CheckSnapshotDirectory(
        snapshots.get(), {options.job_id, job.name, job.state_directory}, {}));
  }
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<Journal> journal,
                          OpenFencedJournal(journal_directory, header, options.journal_owner));
  MUSTER_RETURN_IF_ERROR(CheckId(options, journal->job_id()));
  const SystemClock clock;
  MUSTER_ASSIGN_OR_RETURN(
      const std::unique_ptr<MasterServer> server,
      MasterServer::Start({job, CoreOptionsOf(options, catalog->Plans()), options.listen_address,
                           options.token_file, catalog.get(), options.tls},
                          journal.get(), &clock));
  ::malloc_trim(0);  // memory that was needed to load the journal's state
  while (!server->failure().has_value()) {
    if (!signals.Wait()) continue;
    Log(LogLevel::kInfo, "stopping on a signal");
    server->Stop();
    return absl::OkStatus();
  }
  // The journal can no longer be closed properly (Journal::Write), so the process ends here.
  Log(LogLevel::kError, "the master ends: {}", Message(*server->failure()));
  std::_Exit(absl::IsCancelled(*server->failure()) ? kTakenOverExit : 1);
}

}  // namespace muster
