#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "job/job_spec.h"
#include "master/core/master_core.h"
#include "master/journal/journal.h"
#include "master/sources/source_catalog.h"

namespace muster {

/// kInvalidArgument unless the address is "host:port" with a loopback host (127.0.0.0/8, [::1],
/// localhost): until TLS exists nothing else is listened on.
absl::Status CheckLoopback(const std::string& address);

/// A running master: the core on its owner thread, the journal, and the gRPC services in front.
/// Thread-safe but for Stop, which one thread calls.
class MasterServer {
 public:
  struct Options {
    JobSpec job;
    CoreOptions core;
    /// "127.0.0.1:port"; port 0 = any free one.
    std::string listen_address;
    /// Of the token that AdminService asks for (base/token_file.h); made when there is none.
    std::string token_file;
    /// Of the datasets that `core` has, in the same order. Outlives the server.
    const SourceCatalog* sources = nullptr;
  };

  /// Recovers from the journal and serves. `journal` and `clock` outlive the server. Errors: the
  /// address (not loopback, taken), a journal that does not fit the job, a failed first write.
  static absl::StatusOr<std::unique_ptr<MasterServer>> Start(Options options, Journal* journal,
                                                             const Clock* clock);
  virtual ~MasterServer() = default;

  virtual int port() const = 0;
  /// Why the master must end: its journal cannot be written.
  virtual std::optional<absl::Status> failure() const = 0;
  /// Answers what is in flight or refuses it, then ends all threads. Idempotent.
  virtual void Stop() = 0;
};

}  // namespace muster
