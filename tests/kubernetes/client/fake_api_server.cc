#include "tests/kubernetes/client/fake_api_server.h"

#include <fmt/format.h>
#include <openssl/x509.h>
#include <sys/socket.h>

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/ssl/ssl_stream.hpp>
#include <boost/beast/websocket/ssl.hpp>
#include <boost/beast/websocket/stream.hpp>
#include <optional>
#include <set>
#include <thread>

#include "base/mutex.h"

namespace muster::testing {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
namespace websocket = boost::beast::websocket;
using boost::system::error_code;
using TlsStream = asio::ssl::stream<asio::ip::tcp::socket>;

class WireOverTls final : public FakeWire {
 public:
  WireOverTls(TlsStream* stream, const http::request<http::string_body>* request)
      : stream_(stream), request_(request) {}
  void Send(const std::string& bytes) override {
    error_code error;
    asio::write(*stream_, asio::buffer(bytes), error);
  }
  void Cut() override { ::shutdown(stream_->next_layer().native_handle(), SHUT_RDWR); }
  void WaitForClose() override {
    std::array<char, 256> ignored;
    error_code error;
    while (!error) stream_->read_some(asio::buffer(ignored), error);
  }
  bool AcceptWebSocket(const std::string& protocol) override {
    const auto asked = (*request_)[http::field::sec_websocket_protocol];
    if (std::string(asked.data(), asked.size()) != protocol) return false;
    socket_.emplace(*stream_);
    socket_->set_option(websocket::stream_base::decorator([&](websocket::response_type& response) {
      response.set(http::field::sec_websocket_protocol, protocol);
    }));
    socket_->binary(true);
    error_code error;
    socket_->accept(*request_, error);
    return !error;
  }
  void SendMessage(const std::string& bytes) override {
    error_code error;
    socket_->write(asio::buffer(bytes), error);
  }
  std::optional<std::string> ReadMessage() override {
    boost::beast::flat_buffer message;
    error_code error;
    socket_->read(message, error);
    if (error) return std::nullopt;
    return std::string(static_cast<const char*>(message.cdata().data()), message.size());
  }
  void CloseWebSocket() override {
    error_code error;
    socket_->close(websocket::close_code::normal, error);
  }

 private:
  TlsStream* stream_;
  const http::request<http::string_body>* request_;
  std::optional<websocket::stream<TlsStream&>> socket_;
};

std::string SubjectOf(TlsStream& stream) {
  X509* certificate = ::SSL_get1_peer_certificate(stream.native_handle());
  if (certificate == nullptr) return "";
  std::array<char, 200> text{};
  ::X509_NAME_get_text_by_NID(::X509_get_subject_name(certificate), NID_commonName, text.data(),
                              text.size());
  ::X509_free(certificate);
  return text.data();
}

template <typename Text>
std::string Copy(const Text& text) {
  return {text.data(), text.size()};
}

}  // namespace

class FakeApiServer::Impl {
 public:
  Impl(Handler handler, const TestAuthority& authority, bool wants_client_certificate)
      : handler_(std::move(handler)) {
    const CertificateAndKey own = authority.Issue("kube-apiserver", "127.0.0.1");
    context_.use_certificate_chain(asio::buffer(own.certificate));
    context_.use_private_key(asio::buffer(own.key), asio::ssl::context::pem);
    if (wants_client_certificate) {
      context_.add_certificate_authority(asio::buffer(authority.certificate()));
      context_.set_verify_mode(asio::ssl::verify_peer | asio::ssl::verify_fail_if_no_peer_cert);
    }
    acceptor_thread_ = std::thread([this] { Accept(); });
  }

  ~Impl() {
    ::shutdown(acceptor_.native_handle(), SHUT_RDWR);
    acceptor_thread_.join();
    ShutDownAll();
    for (std::thread& one : threads_) one.join();
  }

  uint16_t port() const { return acceptor_.local_endpoint().port(); }

  std::vector<FakeRequest> requests() const {
    const MutexLock lock(&mutex_);
    return requests_;
  }

  void ShutDownAll() {
    const MutexLock lock(&mutex_);
    for (const int fd : open_) ::shutdown(fd, SHUT_RDWR);
  }

 private:
  void Accept() {
    for (int number = 1;; ++number) {
      asio::ip::tcp::socket socket(io_);
      error_code error;
      acceptor_.accept(socket, error);
      if (error) return;
      {
        const MutexLock lock(&mutex_);
        open_.insert(socket.native_handle());
      }
      threads_.emplace_back([this, number, socket = std::move(socket)]() mutable {
        Serve(std::move(socket), number);
      });
    }
  }

  void Serve(asio::ip::tcp::socket socket, int number) {
    const int fd = socket.native_handle();
    TlsStream stream(std::move(socket), context_);
    error_code error;
    stream.handshake(asio::ssl::stream_base::server, error);
    const std::string client = error ? "" : SubjectOf(stream);
    boost::beast::flat_buffer buffer;
    while (!error) {
      http::request<http::string_body> message;
      http::read(stream, buffer, message, error);
      if (error) break;
      const FakeRequest request{.method = Copy(message.method_string()),
                                .target = Copy(message.target()),
                                .body = message.body(),
                                .authorization = Copy(message[http::field::authorization]),
                                .content_type = Copy(message[http::field::content_type]),
                                .client = client,
                                .connection = number};
      {
        const MutexLock lock(&mutex_);
        requests_.push_back(request);
      }
      WireOverTls wire(&stream, &message);
      handler_(request, wire);
    }
    const MutexLock lock(&mutex_);
    open_.erase(fd);
    stream.next_layer().close(error);
  }

  const Handler handler_;
  asio::io_context io_;
  asio::ssl::context context_{asio::ssl::context::tls_server};
  asio::ip::tcp::acceptor acceptor_{io_, {asio::ip::address_v4::loopback(), 0}};
  mutable Mutex mutex_;
  std::set<int> open_ MUSTER_GUARDED_BY(mutex_);
  std::vector<FakeRequest> requests_ MUSTER_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_;
  std::thread acceptor_thread_;
};

FakeApiServer::FakeApiServer(Handler handler, bool wants_client_certificate)
    : impl_(std::make_unique<Impl>(std::move(handler), authority_, wants_client_certificate)) {}
FakeApiServer::~FakeApiServer() = default;

kubernetes::ClusterAccess FakeApiServer::Access() const {
  kubernetes::ClusterAccess access{.host = "127.0.0.1", .port = impl_->port()};
  access.authority.text = authority_.certificate();
  access.token = "secret";
  return access;
}

std::vector<FakeRequest> FakeApiServer::requests() const {
  return impl_->requests();
}

void FakeApiServer::EndConnections() {
  impl_->ShutDownAll();
}

std::string Answer(int code, const std::string& body, const std::string& more_headers) {
  return fmt::format(
      "HTTP/1.1 {} X\r\nContent-Type: application/json\r\n{}Content-Length: {}\r\n\r\n{}", code,
      more_headers, body.size(), body);
}

std::string ChunkedHead() {
  return "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
}

std::string Chunk(const std::string& bytes) {
  return fmt::format("{:x}\r\n{}\r\n", bytes.size(), bytes);
}

}  // namespace muster::testing
