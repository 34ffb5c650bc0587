#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "admin/admin_client.h"
#include "cli/show/output.h"
#include "cli/state/job_target.h"
#include "cli/state/state_directory.h"

/// The master or state directory that a verb asks.
namespace muster {

struct QueryOptions {
  JobTarget target;
  /// Asks this master instead of the one that the state directory names.
  std::string master;
  /// A question does not wait for a master that is away.
  bool no_wait = false;
  OutputFormat output = OutputFormat::kText;
};

/// How a person's command reaches the master of a run: with the job's token, and under TLS with the
/// operator's certificate.
MasterTarget OperatorTarget(const StateDirectory& state, const Endpoint& endpoint);

/// The master of the running job. NotFound if no job runs; says what to do.
absl::StatusOr<std::unique_ptr<AdminClient>> ConnectToMaster(const QueryOptions& options);

/// Answers a question: the job's master, or its state directory if the job does not run.
struct JobSource {
  std::unique_ptr<AdminClient> client;
  bool live = true;
};

/// Waits a few seconds for a master that is away. Says on stderr when it is the state directory
/// that answers.
absl::StatusOr<JobSource> FindJobSource(const QueryOptions& options);

/// The state directory. If no job ever ran there, `away`, which says why no master answers.
absl::StatusOr<JobSource> OpenStoredSource(const QueryOptions& options, const absl::Status& away);

}  // namespace muster
