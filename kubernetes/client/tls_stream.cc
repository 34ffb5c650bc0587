#include "kubernetes/client/tls_stream.h"

#include <fmt/format.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <utility>

#include "base/status.h"
#include "kubernetes/model/api_error.h"

namespace muster::kubernetes {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace ssl = boost::asio::ssl;
using boost::system::error_code;

absl::Status CertificateError(std::string_view what, const error_code& error) {
  return absl::FailedPreconditionError(fmt::format("{}: {}", what, error.message()));
}

/// Everything that this end needs for TLS, from PEM texts.
absl::Status Configure(const ClusterAccess& access, const Credentials& credentials,
                       ssl::context* context) {
  error_code error;
  if (::SSL_CTX_set_min_proto_version(context->native_handle(), TLS1_2_VERSION) != 1) {
    return absl::InternalError("OpenSSL does not know TLS 1.2");
  }
  absl::StatusOr<std::string> authority = ReadPem(access.authority);
  if (!authority.ok()) return authority.status();
  if (access.authority.empty()) {
    context->set_default_verify_paths(error);
  } else {
    context->add_certificate_authority(asio::buffer(*authority), error);
  }
  if (error) return CertificateError("the cluster's certificate authority cannot be used", error);
  context->set_verify_mode(ssl::verify_peer, error);
  if (credentials.client_certificate.empty()) return absl::OkStatus();
  context->use_certificate_chain(asio::buffer(credentials.client_certificate), error);
  if (error) return CertificateError("the client's certificate cannot be used", error);
  context->use_private_key(asio::buffer(credentials.client_key), ssl::context::pem, error);
  if (error) return CertificateError("the client's key cannot be used", error);
  return absl::OkStatus();
}

bool IsAddress(const std::string& host) {
  error_code error;
  asio::ip::make_address(host, error);
  return !error;
}

}  // namespace

TlsStream::TlsStream(const ClusterAccess& access, std::stop_token stop)
    : url_(access.Url()), prefix_(access.path_prefix), stop_(std::move(stop)) {
  const bool is_ipv6 = access.host.find(':') != std::string::npos;
  host_field_ = is_ipv6 ? fmt::format("[{}]:{}", access.host, access.port)
                        : fmt::format("{}:{}", access.host, access.port);
}

absl::Status TlsStream::Open(const ClusterAccess& access, const Credentials& credentials,
                             TimePoint deadline) {
  MUSTER_RETURN_IF_ERROR_PREPEND(Configure(access, credentials, &context_), url_);
  stream_.emplace(io_, context_);
  MUSTER_RETURN_IF_ERROR(Connect(access, deadline));
  const std::string& name = access.tls_server_name.empty() ? access.host : access.tls_server_name;
  if (!IsAddress(name) && ::SSL_set_tlsext_host_name(stream_->native_handle(), name.c_str()) != 1) {
    return absl::InternalError("OpenSSL refuses the server's name");
  }
  stream_->set_verify_callback(ssl::host_name_verification(name));
  const error_code error = Await(
      [&](auto done) { stream_->async_handshake(ssl::stream_base::client, std::move(done)); });
  if (!error) return absl::OkStatus();
  const int64_t verified = ::SSL_get_verify_result(stream_->native_handle());
  if (error.category() == asio::error::get_ssl_category() && verified != X509_V_OK) {
    return absl::FailedPreconditionError(
        fmt::format("the certificate of {} is not trusted ({}): is it of another cluster?", url_,
                    ::X509_verify_cert_error_string(verified)));
  }
  return Failed(error, "no TLS with");
}

absl::Status TlsStream::Connect(const ClusterAccess& access, TimePoint deadline) {
  asio::ip::tcp::resolver resolver(io_);
  asio::ip::tcp::resolver::results_type endpoints;
  error_code error;
  if (IsAddress(access.host)) {
    endpoints = asio::ip::tcp::resolver::results_type::create(
        asio::ip::tcp::endpoint(asio::ip::make_address(access.host), access.port), access.host,
        std::to_string(access.port));
  } else {
    endpoints = resolver.resolve(access.host, std::to_string(access.port), error);
    if (error) return Failed(error, "the name is not known of");
  }
  lowest().expires_at(deadline);
  error = Await([&](auto done) {
    lowest().async_connect(endpoints, [done](error_code result, const auto&) { done(result); });
  });
  if (error) return Failed(error, "nothing answers at");
  lowest().socket().set_option(asio::ip::tcp::no_delay(true), error);
  return absl::OkStatus();
}

absl::Status TlsStream::Failed(const error_code& error, std::string_view what) const {
  if (stop_.stop_requested()) return absl::CancelledError("stopped");
  if (error == beast::error::timeout) {
    return absl::DeadlineExceededError(fmt::format("{} {} in time", what, url_));
  }
  return ConnectionError(fmt::format("{} {} ({})", what, url_, error.message()));
}

}  // namespace muster::kubernetes
