#include "security/rpc/grpc_credentials.h"

#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"

namespace muster {
namespace {

using grpc::experimental::FileWatcherCertificateProvider;

constexpr char kCipherSuites[] = "GRPC_SSL_CIPHER_SUITES";
/// A cipher of TLS 1.2 that works only if both ends were given a common key before.
constexpr char kUnusable[] = "PSK-AES128-GCM-SHA256";

/// gRPC 1.51 also offers TLS 1.2, and no function changes that. But it reads the ciphers of TLS 1.2
/// from the environment, once. If no certificate can use the cipher there, only TLS 1.3 is left.
/// The variable is set only until gRPC has read it, because trainers inherit the environment and
/// may use gRPC themselves.
absl::Status RefuseOldTls(const Credentials& ours) {
  static Mutex mutex;
  static bool done = false;
  const MutexLock lock(&mutex);
  if (done) return absl::OkStatus();
  const char* const before = std::getenv(kCipherSuites);
  const std::optional<std::string> old =
      before == nullptr ? std::nullopt : std::optional<std::string>(before);
  ::setenv(kCipherSuites, kUnusable, 1);
  // gRPC reads the variable when a server gets its port. So this makes a server without services,
  // under a secret name.
  grpc::SslServerCredentialsOptions options;
  options.pem_key_cert_pairs.push_back({ours.key_pem, ours.certificate_pem});
  grpc::ServerBuilder builder;
  builder.AddListeningPort(
      fmt::format("unix-abstract:muster-{}-{:x}", ::getpid(), std::random_device()()),
      grpc::SslServerCredentials(options));
  const std::unique_ptr<grpc::ServerCompletionQueue> queue = builder.AddCompletionQueue();
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  done = server != nullptr;
  if (done) server->Shutdown();
  queue->Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (queue->Next(&tag, &ok)) {
  }
  if (old.has_value()) {
    ::setenv(kCipherSuites, old->c_str(), 1);
  } else {
    ::unsetenv(kCipherSuites);
  }
  if (done) return absl::OkStatus();
  return absl::InternalError("gRPC cannot be limited to TLS 1.3");
}

std::shared_ptr<FileWatcherCertificateProvider> Watch(const GrpcTls& tls) {
  return std::make_shared<FileWatcherCertificateProvider>(
      tls.files.key, tls.files.certificate, tls.files.ca,
      static_cast<unsigned int>(tls.refresh.count()));
}

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeGrpcServerCredentials(
    const GrpcTls& tls, WallTime now) {
  MUSTER_ASSIGN_OR_RETURN(const Credentials loaded, LoadCredentials(tls.files, tls.ours, now));
  MUSTER_RETURN_IF_ERROR(RefuseOldTls(loaded));
  grpc::experimental::TlsServerCredentialsOptions options(Watch(tls));
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  options.set_cert_request_type(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  return grpc::experimental::TlsServerCredentials(options);
}

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> MakeGrpcChannelCredentials(
    const GrpcTls& tls, Role server, WallTime now, grpc::ChannelArguments* arguments) {
  MUSTER_ASSIGN_OR_RETURN(const Credentials loaded, LoadCredentials(tls.files, tls.ours, now));
  MUSTER_RETURN_IF_ERROR(RefuseOldTls(loaded));
  grpc::experimental::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(Watch(tls));
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  arguments->SetSslTargetNameOverride(IdentityHost(loaded.identity.job_id, server));
  return grpc::experimental::TlsCredentials(options);
}

absl::StatusOr<Identity> PeerIdentity(const grpc::AuthContext& context) {
  for (const grpc::string_ref& uri : context.FindPropertyValues(GRPC_PEER_URI_PROPERTY_NAME)) {
    const absl::StatusOr<Identity> identity = ParseIdentityUri({uri.data(), uri.size()});
    if (identity.ok()) return identity;
  }
  return absl::UnauthenticatedError(
      "the caller's certificate has no URI of the form muster://JOB-ID/ROLE/NAME");
}

}  // namespace muster
