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

/// What a server shows, and what it asks of its clients.
struct ServerTls {
  CredentialFiles files;
  std::string job_id;
  /// Roles whose certificates are accepted. Empty: clients show no certificate, so they must prove
  /// in another way who they are.
  std::vector<Role> clients;
};

/// What a client shows, and what it asks of the server.
struct ClientTls {
  /// Without certificate and key, the client shows no certificate.
  CredentialFiles files;
  std::string job_id;
  Role server = Role::kMaster;
};

/// The context of new connections of one kind: TLS 1.3 only; the peer's certificate must be valid,
/// be signed by the job's authority, and name the job and an expected role. Sessions are not
/// resumed, so every handshake checks certificates. Thread-safe.
class TlsContext {
 public:
  using Context = std::shared_ptr<boost::asio::ssl::context>;
  /// Says what Get() has noticed. The SDK gives its own, because it has no log.
  using Report = std::function<void(LogLevel level, std::string_view text)>;

  /// Errors as of LoadCredentials. `clock` outlives the object.
  static absl::StatusOr<std::unique_ptr<TlsContext>> Make(ServerTls options, const Clock* clock,
                                                          Report report = LogLine);
  static absl::StatusOr<std::unique_ptr<TlsContext>> Make(ClientTls options, const Clock* clock,
                                                          Report report = LogLine);

  /// The context for the next connection; never null. At most once a second, it looks whether the
  /// files have changed, and if so reads them again. If they cannot be used, the old context stays,
  /// and a report says so once. Connections keep the context with which they began.
  Context Get();

 private:
  /// Makes a context from the files as they are now.
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
  /// Of the files' last versions that were tried.
  std::string versions_ MUSTER_GUARDED_BY(mutex_);
};

/// Who the peer is, after a handshake that asked for its certificate. Unauthenticated: it showed
/// none, or one without an identity.
absl::StatusOr<Identity> PeerIdentity(SSL* ssl);

/// Whether a handshake failed because the client sent a request of plain HTTP.
bool IsPlainHttp(const boost::system::error_code& error);

/// For a client whose connections another library makes, with the authority of `options`: adds what
/// TlsContext demands of the server. A handshake that fails for it says why in `refusal`.
void RequireServer(SSL_CTX* context, const ClientTls& options, std::string* refusal);

/// The same as below, from a text that has OpenSSL's ("error:0A00010B:...").
std::string TlsErrorText(std::string_view words);

/// Why a handshake, or the first read after it, failed, and what to do about it. `ssl` is the
/// connection's.
std::string TlsErrorText(const boost::system::error_code& error, SSL* ssl);

}  // namespace muster
