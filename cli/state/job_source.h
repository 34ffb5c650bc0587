#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "admin/admin_client.h"
#include "cli/show/output.h"
#include "cli/state/job_target.h"
#include "cli/state/state_directory.h"

/// How a verb finds the master or the state directory that it asks.
namespace muster {

struct QueryOptions {
  JobTarget target;
  /// The address of a master to ask, in place of the one that the state directory names.
  std::string master;
  /// Whether a question fails at once if the master is away.
  bool no_wait = false;
  OutputFormat output = OutputFormat::kText;
};

/// How a person's command reaches the master of a run. It shows the job's token and, under TLS, the
/// operator's certificate.
MasterTarget OperatorTarget(const StateDirectory& state, const Endpoint& endpoint);

/// Connects to the master of the running job. NotFound if no job runs; it says what to do.
absl::StatusOr<std::unique_ptr<AdminClient>> ConnectToMaster(const QueryOptions& options);

/// Answers questions: the job's master or, if the job does not run, its state directory.
struct JobSource {
  std::unique_ptr<AdminClient> client;
  bool live = true;
};

/// Waits a few seconds for a master that is away. It says on stderr if the answers come from the
/// state directory.
absl::StatusOr<JobSource> FindJobSource(const QueryOptions& options);

/// Opens the state directory. If no job ever ran there, it returns `away`, which says why no master
/// answers.
absl::StatusOr<JobSource> OpenStoredSource(const QueryOptions& options, const absl::Status& away);

}  // namespace muster
