#pragma once

#include <string>
#include <string_view>

#include "cli/cluster/job_look.h"
#include "cli/run/run_supervisor.h"
#include "cli/state/cluster_target.h"

/// The texts of `muster run --on kubernetes`. Pure, thread-safe functions.
namespace muster::cluster {

/// The summary in a pod's log. The run in the job's pod prints it at its end. Empty if there is
/// none.
std::string SummaryIn(std::string_view log, const std::string& job);

/// How a job ended that is over.
RunOutcome OutcomeOf(const JobLook& look);

/// The options with which a verb finds this job: "--job ads --on kubernetes --namespace team".
std::string OptionsFor(const std::string& job, const ClusterTarget& target);

/// The line to print about the look `now`, which follows the look `before`. Empty if nothing is
/// new. `asks` comes from OptionsFor, and `deletes` from DeleteCommand.
std::string NewsOf(const JobLook& before, const JobLook& now, const std::string& asks,
                   const std::string& deletes);

/// What to say if the user leaves the view with Ctrl-C: how to see the job again, and how to end
/// it.
std::string LeavingText(const JobLook& look, const std::string& job, const std::string& asks,
                        const std::string& deletes);

}  // namespace muster::cluster
