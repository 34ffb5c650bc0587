#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "job/job_spec.h"
#include "master/core/core_options.h"
#include "master/journal/fenced_journal.h"
#include "security/credentials.h"

namespace muster {

struct MasterOptions {
  JobSpec job;
  /// "127.0.0.1:port".
  std::string listen_address;
  /// The supervisor's run; see CoreOptions.
  std::string run_id;
  bool retry_failed = false;
  /// For tests: `--planted-bug`, in no release build.
  PlantedBugs planted_bugs;
  /// The id for a new job; a resumed job must have this id. Empty: a random id, or the journal's.
  std::string job_id;
  /// Of the token that AdminService asks for (base/token_file.h); made when there is none.
  std::string token_file;
  /// Where, and by whom, the master is started, and whether it may take the job from another one.
  JournalOwner journal_owner{};
  /// Called whenever some of the data was read before the master answers; by any thread.
  std::function<void()> alive = {};
  /// The master's certificate; without one, its port is plain text.
  std::optional<CredentialFiles> tls;
};

/// What the core must know of the job. `datasets` in the job's order.
CoreOptions CoreOptionsOf(const MasterOptions& options, std::vector<DatasetPlan> datasets);

/// Runs the master until SIGTERM or SIGINT (then OK) or until something fatal happens: data that
/// are missing or changed, a journal that is another job's, in use, or not writable, a taken port.
/// A journal that can no longer be written while it runs ends the process with exit code 1 and a
/// message: nothing that was acknowledged is lost. If another master takes the job over, the
/// process ends with kTakenOverExit; at its start, this is kCancelled. Call it from the main thread
/// before other threads exist, because it blocks the two signals.
absl::Status RunMaster(const MasterOptions& options);

}  // namespace muster
