#include "cli/job_source.h"

#include <utility>

#include "base/status.h"
#include "cli/stored_job.h"

namespace muster {
namespace {

constexpr std::chrono::milliseconds kMasterDeadline{5'000};

}  // namespace

absl::StatusOr<std::unique_ptr<AdminClient>> ConnectToMaster(const QueryOptions& options) {
  if (!options.master.empty()) {
    return MakeAdminClient(options.master, {}, kMasterDeadline, WhenAway::kFail);
  }
  MUSTER_ASSIGN_OR_RETURN(const StateDirectory state, FindStateDirectory(options.target));
  MUSTER_ASSIGN_OR_RETURN(const Endpoint endpoint, state.ReadEndpoint());
  return MakeAdminClient(endpoint.master, endpoint.job, kMasterDeadline, WhenAway::kFail);
}

absl::StatusOr<JobSource> OpenStoredSource(const QueryOptions& options, const absl::Status& away) {
  absl::StatusOr<std::unique_ptr<AdminClient>> stored = OpenStoredJob(options.target);
  if (absl::IsNotFound(stored.status())) return away;
  if (!stored.ok()) return Annotate(stored.status(), Message(away));
  return JobSource{*std::move(stored), false};
}

absl::StatusOr<JobSource> FindJobSource(const QueryOptions& options) {
  absl::StatusOr<std::unique_ptr<AdminClient>> client = ConnectToMaster(options);
  if (client.ok()) return JobSource{*std::move(client), true};
  if (!absl::IsNotFound(client.status())) return client.status();
  absl::StatusOr<JobSource> source = OpenStoredSource(options, client.status());
  if (source.ok()) PrintNote("the job is not running; this is what its state directory holds");
  return source;
}

}  // namespace muster
