#pragma once

#include <string>
#include <string_view>

#include "cli/cluster/job_look.h"
#include "cli/run/run_supervisor.h"
#include "cli/state/cluster_target.h"

/// What `muster run --on kubernetes` says. Pure, thread-safe functions.
namespace muster::cluster {

/// The summary that the run in the job's pod printed at its end, from the pod's log; empty if there
/// is none.
std::string SummaryIn(std::string_view log, const std::string& job);

/// How a job that is over ended.
RunOutcome OutcomeOf(const JobLook& look);

/// The options with which a verb finds this job: "--job ads --on kubernetes --namespace team".
std::string OptionsFor(const std::string& job, const ClusterTarget& target);

/// The line about a look, after the one before it; empty: nothing is new. `asks` is an example of
/// OptionsFor, and `deletes` one of DeleteCommand.
std::string NewsOf(const JobLook& before, const JobLook& now, const std::string& asks,
                   const std::string& deletes);

/// What is said to somebody who leaves the view with Ctrl-C: how the job is seen again and ended.
std::string LeavingText(const JobLook& look, const std::string& job, const std::string& asks,
                        const std::string& deletes);

}  // namespace muster::cluster
