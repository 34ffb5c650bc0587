#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "cli/state/state_directory.h"
#include "job/file/load_job.h"
#include "master/sources/source_catalog.h"

namespace muster {

/// Makes the checks that a run makes when it takes its directories, but takes, creates and changes
/// nothing. It checks that the directories can be written, that no other run uses the state
/// directory, that journal and snapshots do not belong to another job, and that the data are those
/// with which the job began. If the job has not begun, it reads the data to the end, as the job's
/// master will. `progress` may be empty. The error is the same that the run would give.
absl::Status CheckDirectories(const LoadedJob& job, const ProgressFn& progress);

/// Says what is wrong with the nodes' memory limits on a machine with this much memory. Empty if
/// nothing is wrong, or if limits or memory are not known. It is no error, because a limit that is
/// never reached does no harm.
std::string LimitsBeyond(const JobSpec& job, uint64_t machine_bytes);

/// Tests that the job can write its snapshots. If the folder is missing, it is created.
absl::Status MakeSnapshotsWritable(const JobSpec& job);

/// The id of the job whose journal is in the state directory, or `fresh` if the job has not begun.
/// Empty if the journal cannot be read; then the master will say why. The caller must hold the
/// state directory's lock.
std::string JobIdOf(const StateDirectory& state, const std::string& fresh);

/// How often a run has started its master and its scaler, according to the journal in the state
/// directory. 0 if the journal is not of this run or cannot be read. The caller must hold the state
/// directory's lock.
struct StartsBefore {
  uint32_t master = 0;
  uint32_t scaler = 0;
};
StartsBefore StartsOf(const StateDirectory& state, const std::string& run_id);

}  // namespace muster
