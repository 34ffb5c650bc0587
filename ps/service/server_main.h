#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "base/words/types.h"
#include "ps/service/listen_place.h"
#include "security/credentials.h"

namespace muster::ps {

/// The options of `muster ps`.
struct ServerOptions {
  std::string name;            // "ps-0": the number is its slot
  StartNumber start;           // which process of that name it is; 0: not known
  std::string master_address;  // "127.0.0.1:port"
  /// Of the UNIX sockets; empty: TCP only. Must exist.
  std::string socket_directory;
  /// The job's snapshots as this machine sees them; empty: under the master's path.
  std::string snapshot_directory;
  uint32_t threads = 1;  // lanes
  std::string job_id;    // masters of other jobs are ignored; empty: not known
  /// The server's certificate; without one, calls to the master are plain text.
  std::optional<CredentialFiles> tls;
  /// Where it listens for TCP.
  ListenWish listen;
  /// How long it waits for the snapshots of its partitions when it is told to end.
  std::chrono::milliseconds drain_timeout{8'000};
  /// How long its threads may take to end after that. Otherwise the process exits with code 1.
  std::chrono::milliseconds end_timeout{10'000};
  /// How long it goes on while the master does not answer; 0: for ever.
  std::chrono::seconds master_away_max{0};
};

/// Runs a parameter server until SIGTERM or SIGINT (OK), or until it cannot continue:
/// kInvalidArgument for options out of bounds; kFailedPrecondition if the master refuses or no
/// longer knows it, or if the process may have too few open files. After the first signal it takes
/// snapshots of its partitions (for `drain_timeout` at most); the second signal ends it at once.
/// Call it from the main thread before other threads exist, because it blocks both signals in all
/// threads.
absl::Status RunServer(const ServerOptions& options);

}  // namespace muster::ps
