#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "proto/messages/control.h"
#include "security/credentials.h"

namespace muster::ps {

/// The master as a server calls it. Blocking calls with deadlines, from one thread; Cancel() from
/// any.
class MasterClient {
 public:
  virtual ~MasterClient() = default;
  /// kUnavailable and kDeadlineExceeded: try again. Anything else will not change by itself.
  virtual absl::StatusOr<RegisterServerReply> Register(const RegisterServerRequest& request) = 0;
  /// A request with `leaving` fails at once if the master does not answer.
  virtual absl::StatusOr<ServerExchangeReply> Exchange(const ServerExchangeRequest& request) = 0;
  /// Ends the call in progress, and every later call, with kCancelled.
  virtual void Cancel() = 0;
};

struct MasterAddress {
  std::string address;  // "127.0.0.1:port"
  /// Every call carries it; if it is empty, the id from the registration.
  std::string job_id;
  /// The server's certificate; without one, calls are plain text.
  std::optional<CredentialFiles> tls = std::nullopt;
};
/// Over gRPC. A master of another job answers kUnavailable. Errors: the certificate.
absl::StatusOr<std::unique_ptr<MasterClient>> MakeGrpcMasterClient(const MasterAddress& master,
                                                                   const Clock& clock);

}  // namespace muster::ps
