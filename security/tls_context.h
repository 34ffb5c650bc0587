#pragma once

#include <openssl/ssl.h>

#include <boost/asio/ssl/context.hpp>
#include <boost/system/error_code.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mutex.h"
#include "security/credentials.h"
#include "security/identity.h"

namespace muster {

/// What a server shows, and what it demands of its clients.
struct ServerTls {
  CredentialFiles files;
  std::string job_id;
  /// The roles whose certificates are accepted. If empty, clients show no certificate, so they must
  /// prove their identity in another way.
  std::vector<Role> clients;
};

/// What a client shows, and what it demands of the server.
struct ClientTls {
  /// Without certificate and key, the client shows no certificate.
  CredentialFiles files;
  std::string job_id;
  Role server = Role::kMaster;
};

/// The context for new connections of one kind. It allows only TLS 1.3. The peer's certificate must
/// be valid, be signed by the job's authority, and name the job and an expected role. Sessions are
/// not resumed, so every handshake checks certificates. Thread-safe.
class TlsContext {
 public:
  using Context = std::shared_ptr<boost::asio::ssl::context>;
  /// Reports what Get() has noticed. The SDK passes its own function, because it has no log.
  using Report = std::function<void(LogLevel level, std::string_view text)>;

  /// Errors are those of LoadCredentials. `clock` outlives the object.
  static absl::StatusOr<std::unique_ptr<TlsContext>> Make(ServerTls options, const Clock* clock,
                                                          Report report = LogLine);
  static absl::StatusOr<std::unique_ptr<TlsContext>> Make(ClientTls options, const Clock* clock,
                                                          Report report = LogLine);

  /// The context for the next connection; never null. At most once a second, it checks whether the
  /// files have changed, and if so, reads them again. If they cannot be used, the old context
  /// stays, and a report says so once. Connections keep the context with which they began.
  Context Get();

 private:
  /// Makes a context from the present files.
  using Load = std::function<absl::StatusOr<Context>()>;
  TlsContext(CredentialFiles files, Load load, const Clock* clock, Report report)
      : files_(std::move(files)),
        load_(std::move(load)),
        clock_(clock),
        report_(std::move(report)) {}
  static absl::StatusOr<std::unique_ptr<TlsContext>> Make(CredentialFiles files, Load load,
                                                          const Clock* clock, Report report);

  const CredentialFiles files_;
  const Load load_;
  const Clock* const clock_;
  const Report report_;
  Mutex mutex_;
  Context context_ MUSTER_GUARDED_BY(mutex_);
  TimePoint looked_at_ MUSTER_GUARDED_BY(mutex_);
  /// The newest versions of the files that were tried.
  std::string versions_ MUSTER_GUARDED_BY(mutex_);
};

/// The identity of the peer, after a handshake that asked for its certificate. Unauthenticated if
/// it showed none, or one without an identity.
absl::StatusOr<Identity> PeerIdentity(SSL* ssl);

/// True if a handshake failed because the client sent a request of plain HTTP.
bool IsPlainHttp(const boost::system::error_code& error);

/// For a client whose connections another library makes, with the authority of `options`. Adds what
/// TlsContext demands of the server. If a handshake fails because of it, `refusal` says why.
void RequireServer(SSL_CTX* context, const ClientTls& options, std::string* refusal);

/// The same as below, from a text that contains OpenSSL's error ("error:0A00010B:...").
std::string TlsErrorText(std::string_view words);

/// Why a handshake, or the first read after it, failed, and what to do about it. `ssl` is that of
/// the connection.
std::string TlsErrorText(const boost::system::error_code& error, SSL* ssl);

}  // namespace muster
