#pragma once

#include <string>

#include "absl/status/status.h"
#include "cli/state/state_directory.h"
#include "job/file/load_job.h"
#include "master/sources/source_catalog.h"

namespace muster {

/// What a run finds out about its directories when it takes them, without taking them: nothing is
/// created or changed. Whether they can be written; whether another run uses the state directory,
/// or its journal is another job's; whether the data are those that the job began with; whether
/// the snapshots are another job's. Data of a job that has not begun are read to the end, as its
/// master will; `progress` may be empty. The error is the one that the run would end with.
absl::Status CheckDirectories(const LoadedJob& job, const ProgressFn& progress);

/// The id of the job whose journal is in the state directory, or `fresh` for a job that begins.
/// Empty when the journal cannot be read: its master will say why. To be asked by who holds the
/// state directory's lock.
std::string JobIdOf(const StateDirectory& state, const std::string& fresh);

}  // namespace muster
