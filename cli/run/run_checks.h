#pragma once

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

/// The id of the job whose journal is in the state directory, or `fresh` for a job that begins.
/// Empty if the journal cannot be read; its master will say why. The caller must have the state
/// directory's lock.
std::string JobIdOf(const StateDirectory& state, const std::string& fresh);

}  // namespace muster
