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

/// What one end of the control plane shows to the other.
struct GrpcTls {
  CredentialFiles files;
  /// It is checked when the credentials are made, and not when the files change.
  ExpectedIdentity ours;
  /// How often the files are read again.
  std::chrono::seconds refresh{10};
};

/// For a server. Each client must show a certificate of the job's authority. PeerIdentity returns
/// its role. Errors are those of LoadCredentials.
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeGrpcServerCredentials(
    const GrpcTls& tls, WallTime now);

/// For a client whose server must have the role `server` in the job that our own certificate names.
/// It puts what the channel needs for this check into `arguments`. Errors are those of
/// LoadCredentials.
absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> MakeGrpcChannelCredentials(
    const GrpcTls& tls, Role server, WallTime now, grpc::ChannelArguments* arguments);

/// The identity of the caller. Unauthenticated if its certificate has none.
absl::StatusOr<Identity> PeerIdentity(const grpc::AuthContext& context);

}  // namespace muster
