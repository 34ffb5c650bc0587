#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/admin.pb.h"
#include "proto/messages/job_identity.h"
#include "proto/status/job_status.h"
#include "proto/status/partition_status.h"
#include "proto/status/shard_status.h"
#include "security/credentials.h"

namespace muster {

/// The questions and orders of AdminService (proto/admin.proto). Each has a deadline of its own.
/// Errors name the master's address. Unavailable or DeadlineExceeded means that the master cannot
/// be reached. Thread-safe.
class AdminClient {
 public:
  virtual ~AdminClient() = default;
  /// Cancels the calls in flight. They and all later calls fail with kCancelled: whoever ends need
  /// not wait for a master that is gone.
  virtual void End() = 0;
  virtual absl::StatusOr<JobStatus> GetStatus() = 0;
  virtual absl::StatusOr<ShardPage> ListShards(const v1::ListShardsRequest& request) = 0;
  virtual absl::StatusOr<ShardMap> GetShardMap(const v1::GetShardMapRequest& request) = 0;
  virtual absl::StatusOr<v1::RetryShardsResponse> RetryShards(
      const v1::RetryShardsRequest& request) = 0;
  virtual absl::StatusOr<MasterEvents> ListEvents(const v1::ListEventsRequest& request) = 0;
  virtual absl::Status ReportNode(const v1::ReportNodeRequest& request) = 0;
  virtual absl::StatusOr<v1::JoinNodeResponse> JoinNode(const v1::JoinNodeRequest& request) = 0;
  virtual absl::Status Drain() = 0;
  virtual absl::StatusOr<v1::DrainNodeResponse> DrainNode(const v1::DrainNodeRequest& request) = 0;
  virtual absl::Status ResumeNode(const v1::ResumeNodeRequest& request) = 0;
  virtual absl::StatusOr<PartitionList> ListPartitions(
      const v1::ListPartitionsRequest& request) = 0;
  virtual absl::Status Cancel(const v1::CancelRequest& request) = 0;
  virtual absl::StatusOr<v1::GetManifestResponse> GetManifest(
      const v1::GetManifestRequest& request) = 0;
};

/// What a call does while the master cannot be reached.
enum class WhenAway : uint8_t {
  kFail,  // it fails at once
  kWait,  // it waits until the deadline, because the master may come back
};

struct MasterTarget {
  std::string address;  // "127.0.0.1:20123"
  JobIdentity job;      // the parts that are known
  /// The file of the job's token (base/token_file.h). It is read for every call, so a new token
  /// works at once.
  std::string token_file;
  /// Our certificate, that of an operator or a scaler. Without one, calls are plain text. If it
  /// cannot be used, every call fails with the reason.
  std::optional<CredentialFiles> tls = std::nullopt;
  /// Only for `muster join`: the same as in JoinNodeRequest. The master then knows who asks for the
  /// status.
  std::string joiner = {};
};

/// Makes a client of a master. It connects when it is first used, and again whenever the master
/// comes back. Calls that take longer than `deadline` fail with DeadlineExceeded; GetManifest may
/// take ten times as long. A master of another job counts as no master (Unavailable).
/// Unauthenticated means that the master is there, but the token cannot be read or is wrong.
std::unique_ptr<AdminClient> MakeAdminClient(MasterTarget target,
                                             std::chrono::milliseconds deadline,
                                             WhenAway when_away);

/// True if the master could not be reached. False if it answered with an error.
bool IsUnreachable(const absl::Status& status);

}  // namespace muster
