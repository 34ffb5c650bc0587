#include "security/tls_context.h"

#include <openssl/err.h>
#include <sys/stat.h>

#include <boost/asio/error.hpp>
#include <boost/asio/ssl/error.hpp>
#include <charconv>
#include <utility>

#include "base/status.h"
#include "security/certificate.h"
#include "security/peer_check.h"

namespace muster {
namespace {

namespace ssl = boost::asio::ssl;
using security::Certificate;

constexpr std::chrono::seconds kLookEvery{1};

/// A text that changes when a file is replaced or changed.
std::string VersionsOf(const CredentialFiles& files) {
  std::string versions;
  for (const std::string& path : {files.ca, files.certificate, files.key}) {
    struct stat info{};
    if (path.empty() || ::stat(path.c_str(), &info) != 0) {
      versions += "-;";
      continue;
    }
    versions += fmt::format("{} {} {} {}.{};", info.st_dev, info.st_ino, info.st_size,
                            info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
  }
  return versions;
}

absl::Status UseAuthority(SSL_CTX* context, std::string_view pem) {
  MUSTER_ASSIGN_OR_RETURN(const Certificate authority, security::ParseCertificate(pem));
  if (X509_STORE_add_cert(SSL_CTX_get_cert_store(context), authority.get()) != 1) {
    return security::OpensslError("use the authority's certificate");
  }
  return absl::OkStatus();
}

absl::Status UseOwn(SSL_CTX* context, const Credentials& credentials) {
  MUSTER_ASSIGN_OR_RETURN(const Certificate own,
                          security::ParseCertificate(credentials.certificate_pem));
  MUSTER_ASSIGN_OR_RETURN(const security::Key key, security::ParseKey(credentials.key_pem));
  if (SSL_CTX_use_certificate(context, own.get()) != 1 ||
      SSL_CTX_use_PrivateKey(context, key.get()) != 1) {
    return security::OpensslError("use our certificate");
  }
  return absl::OkStatus();
}

/// Allows TLS 1.3 and nothing else, and no resumed sessions.
void Restrict(SSL_CTX* handle) {
  SSL_CTX_set_min_proto_version(handle, TLS1_3_VERSION);
  // AES with 128 bits comes first, because it is a fifth faster, which the data plane notices.
  // Servers follow the order of clients.
  SSL_CTX_set_ciphersuites(
      handle, "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256");
  SSL_CTX_set_num_tickets(handle, 0);
  SSL_CTX_set_session_cache_mode(handle, SSL_SESS_CACHE_OFF);
}

TlsContext::Context NewContext(ssl::context::method method) {
  auto context = std::make_shared<ssl::context>(method);
  Restrict(context->native_handle());
  return context;
}

absl::StatusOr<TlsContext::Context> LoadServer(const ServerTls& options, const Clock* clock) {
  MUSTER_ASSIGN_OR_RETURN(
      const Credentials credentials,
      LoadCredentials(options.files, {.job_id = options.job_id, .role = {}}, clock->Wall()));
  TlsContext::Context context = NewContext(ssl::context::tlsv13_server);
  SSL_CTX* const handle = context->native_handle();
  MUSTER_RETURN_IF_ERROR(UseOwn(handle, credentials));
  MUSTER_RETURN_IF_ERROR(UseAuthority(handle, credentials.ca_pem));
  if (!options.clients.empty()) {
    security::RequirePeer(handle, {.job_id = options.job_id, .roles = options.clients});
  }
  return context;
}

absl::StatusOr<TlsContext::Context> LoadClient(const ClientTls& options, const Clock* clock) {
  TlsContext::Context context = NewContext(ssl::context::tlsv13_client);
  SSL_CTX* const handle = context->native_handle();
  if (options.files.certificate.empty()) {
    MUSTER_ASSIGN_OR_RETURN(const std::string authority,
                            LoadAuthority(options.files.ca, clock->Wall()));
    MUSTER_RETURN_IF_ERROR(UseAuthority(handle, authority));
  } else {
    MUSTER_ASSIGN_OR_RETURN(
        const Credentials credentials,
        LoadCredentials(options.files, {.job_id = options.job_id, .role = {}}, clock->Wall()));
    MUSTER_RETURN_IF_ERROR(UseOwn(handle, credentials));
    MUSTER_RETURN_IF_ERROR(UseAuthority(handle, credentials.ca_pem));
  }
  security::RequirePeer(handle, {.job_id = options.job_id, .roles = {options.server}});
  return context;
}

/// The meaning of an alert from the peer, or of bytes that are not TLS 1.3. Empty if it is not
/// known.
std::string_view ReasonText(int reason) {
  switch (reason) {
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
      return "the peer does not know the authority that signed our certificate; it is a process of "
             "another job, or one of both uses an old ca.crt";
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
      return "the peer says that our certificate has expired; renew it (`muster run` does so) and "
             "set the clocks of both machines";
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
      return "the peer refuses our certificate, because of its job, its role or its dates; the "
             "peer's log says which";
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
    case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
      return "the client showed no certificate, but the server needs one of this job; give the "
             "client its files";
    case SSL_R_UNSUPPORTED_PROTOCOL:
    case SSL_R_TLSV1_ALERT_PROTOCOL_VERSION:
    case SSL_R_BAD_PROTOCOL_VERSION_NUMBER:
      return "one end offers no TLS 1.3, and Muster speaks nothing older; use a client with TLS "
             "1.3";
    case SSL_R_HTTP_REQUEST:
    case SSL_R_HTTPS_PROXY_REQUEST:
    case SSL_R_WRONG_VERSION_NUMBER:
    case SSL_R_PACKET_LENGTH_TOO_LONG:
      return "the other end speaks plain text, but this connection is TLS; use https:// or give "
             "both ends the same spec.security";
    default:
      return "";
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<TlsContext>> TlsContext::Make(CredentialFiles files, Load load,
                                                             const Clock* clock, Report report) {
  std::unique_ptr<TlsContext> made(
      new TlsContext(std::move(files), std::move(load), clock, std::move(report)));
  MutexLock lock(&made->mutex_);
  // The versions are taken before the files are read, so that a change in between is noticed the
  // next time.
  made->versions_ = VersionsOf(made->files_);
  made->looked_at_ = clock->Now();
  MUSTER_ASSIGN_OR_RETURN(made->context_, made->load_());
  return made;
}

absl::StatusOr<std::unique_ptr<TlsContext>> TlsContext::Make(ServerTls options, const Clock* clock,
                                                             Report report) {
  CredentialFiles files = options.files;
  return Make(
      std::move(files),
      [options = std::move(options), clock] { return LoadServer(options, clock); }, clock,
      std::move(report));
}

absl::StatusOr<std::unique_ptr<TlsContext>> TlsContext::Make(ClientTls options, const Clock* clock,
                                                             Report report) {
  CredentialFiles files = options.files;
  return Make(
      std::move(files),
      [options = std::move(options), clock] { return LoadClient(options, clock); }, clock,
      std::move(report));
}

TlsContext::Context TlsContext::Get() {
  MutexLock lock(&mutex_);
  const TimePoint now = clock_->Now();
  if (now - looked_at_ < kLookEvery) return context_;
  looked_at_ = now;
  std::string versions = VersionsOf(files_);
  if (versions == versions_) return context_;
  versions_ = std::move(versions);
  absl::StatusOr<Context> loaded = load_();
  if (loaded.ok()) {
    context_ = *std::move(loaded);
    report_(LogLevel::kInfo, fmt::format("certificates were read again: {}", files_.ca));
  } else {
    report_(LogLevel::kWarning,
            fmt::format("the old certificates stay in use, because the new ones cannot be: {}",
                        Message(loaded.status())));
  }
  return context_;
}

absl::StatusOr<Identity> PeerIdentity(SSL* ssl) {
  const Certificate peer(SSL_get1_peer_certificate(ssl));
  if (peer == nullptr) return absl::UnauthenticatedError("the peer showed no certificate");
  absl::StatusOr<Identity> identity = security::IdentityOf(peer.get());
  if (identity.ok()) return identity;
  return absl::UnauthenticatedError(
      fmt::format("the peer's certificate: {}", Message(identity.status())));
}

bool IsPlainHttp(const boost::system::error_code& error) {
  return error.category() == boost::asio::error::get_ssl_category() &&
         ERR_GET_REASON(static_cast<unsigned long>(error.value())) == SSL_R_HTTP_REQUEST;
}

void RequireServer(SSL_CTX* context, const ClientTls& options, std::string* refusal) {
  Restrict(context);
  security::RequirePeer(context,
                        {.job_id = options.job_id, .roles = {options.server}, .refusal = refusal});
}

std::string TlsErrorText(std::string_view words) {
  constexpr std::string_view kCode = "error:";  // eight digits follow
  const size_t at = words.find(kCode);
  uint32_t code = 0;
  if (at != std::string_view::npos) {
    const char* const digits = words.data() + at + kCode.size();
    std::from_chars(digits, std::min(digits + 8, words.data() + words.size()), code, 16);
  }
  const std::string_view text = ReasonText(ERR_GET_REASON(code));
  return std::string(text.empty() ? words : text);
}

std::string TlsErrorText(const boost::system::error_code& error, SSL* ssl) {
  if (std::string refusal = security::RefusalOf(ssl); !refusal.empty()) return refusal;
  if (error.category() == boost::asio::error::get_ssl_category()) {
    const std::string_view text =
        ReasonText(ERR_GET_REASON(static_cast<unsigned long>(error.value())));
    if (!text.empty()) return std::string(text);
  }
  if (error == boost::asio::error::eof || error == boost::asio::ssl::error::stream_truncated) {
    return "the peer ended the connection without a word; it may speak plain text, or have ended";
  }
  return error.message();
}

}  // namespace muster
