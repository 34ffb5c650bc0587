#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <memory>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "security/credentials.h"
#include "security/identity.h"

/// TLS 1.3 for gRPC, in both directions. Thread-safe functions.
namespace muster {

/// What one end of the control plane shows.
struct GrpcTls {
  CredentialFiles files;
  /// Checked when the credentials are made, and not again when the files change.
  ExpectedIdentity ours;
  /// How often the files are read again.
  std::chrono::seconds refresh{10};
};

/// For a server: each client must show a certificate of the job's authority. Its role is in
/// PeerIdentity. Errors as of LoadCredentials.
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeGrpcServerCredentials(
    const GrpcTls& tls, WallTime now);

/// For a client of a server of role `server` in the job that our own certificate names. Puts into
/// `arguments` what the channel needs to check that. Errors as of LoadCredentials.
absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> MakeGrpcChannelCredentials(
    const GrpcTls& tls, Role server, WallTime now, grpc::ChannelArguments* arguments);

/// Who made a call. Unauthenticated: the certificate has no identity.
absl::StatusOr<Identity> PeerIdentity(const grpc::AuthContext& context);

}  // namespace muster
