#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "cli/state/state_directory.h"
#include "job/file/load_job.h"
#include "master/sources/source_catalog.h"

namespace muster {

/// The checks that a run makes when it takes its directories, but without taking, creating or
/// changing anything: the directories can be written; no other run uses the state directory; the
/// journal and the snapshots do not belong to another job; the data are those with which the job
/// began. If the job has not begun, the data are read to the end, as its master will do; `progress`
/// may be empty. The error is the same that the run would give.
absl::Status CheckDirectories(const LoadedJob& job, const ProgressFn& progress);

/// What is wrong with the nodes' memory limits on a machine with so much memory; empty: nothing, or
/// one of both is not known. No error, because a limit that is never reached does no harm by
/// itself.
std::string LimitsBeyond(const JobSpec& job, uint64_t machine_bytes);

/// Proves that the job can write its snapshots; a folder is created.
absl::Status MakeSnapshotsWritable(const JobSpec& job);

/// The id of the job whose journal is in the state directory, or `fresh` for a job that begins.
/// Empty if the journal cannot be read; its master will say why. The caller must have the state
/// directory's lock.
std::string JobIdOf(const StateDirectory& state, const std::string& fresh);

/// How often a run has started its master and its scaler, as the journal in the state directory
/// has it. 0 for a run that is not the journal's, and if the journal cannot be read. The caller
/// must have the state directory's lock.
struct StartsBefore {
  uint32_t master = 0;
  uint32_t scaler = 0;
};
StartsBefore StartsOf(const StateDirectory& state, const std::string& run_id);

}  // namespace muster
