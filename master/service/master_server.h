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
#include "security/credentials.h"

namespace muster {

/// kInvalidArgument unless the address is "host:port" and loopback, or its connections are TLS or
/// allowed to be plain text.
absl::Status CheckListening(const std::string& address, const SecuritySpec& security, bool tls);

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
    /// The master's certificate; without one, the port is plain text.
    std::optional<CredentialFiles> tls = std::nullopt;
  };

  /// Recovers from the journal and serves. `journal` and `clock` outlive the server. Errors: the
  /// address (not loopback, taken), the certificate, a journal that does not fit the job, a failed
  /// first write.
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
