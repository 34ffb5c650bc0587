// The REST interface over TLS.
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/streambuf.hpp>
#include <boost/asio/write.hpp>

#include "tests/scaler/rest/server/tls_fixture.h"

namespace muster::scaler::rest {
namespace {

namespace asio = boost::asio;
using muster::testing::StatusIs;
using ::testing::HasSubstr;
using ::testing::StartsWith;

/// A client as browsers and curl are: it knows the authority, and checks the address.
class Browser {
 public:
  Browser(uint16_t port, const std::string& ca) : port_(port) {
    context_.load_verify_file(ca);
    stream_.emplace(io_, context_);
    stream_->set_verify_mode(asio::ssl::verify_peer);
    stream_->set_verify_callback(asio::ssl::host_name_verification("127.0.0.1"));
    stream_->next_layer().connect({asio::ip::address_v4::loopback(), port});
    stream_->handshake(asio::ssl::stream_base::client, error_);
  }
  void Send(const std::string& head) {
    asio::write(*stream_,
                asio::buffer(fmt::format("{}\r\nHost: 127.0.0.1:{}\r\nAuthorization: Bearer {}\r\n"
                                         "Connection: close\r\n\r\n",
                                         head, port_, testing::kToken)),
                error_);
  }
  /// All that comes; error() says how it ended.
  std::string ReadAll() {
    asio::streambuf text;
    asio::read(*stream_, text, error_);
    return {asio::buffers_begin(text.data()), asio::buffers_end(text.data())};
  }
  std::string ReadUntil(const std::string& mark) {
    std::string text;
    asio::read_until(*stream_, asio::dynamic_buffer(text), mark, error_);
    return text;
  }
  const boost::system::error_code& error() const { return error_; }

 private:
  const uint16_t port_;
  asio::io_context io_;
  asio::ssl::context context_{asio::ssl::context::tls_client};
  std::optional<asio::ssl::stream<asio::ip::tcp::socket>> stream_;
  boost::system::error_code error_;
};

class HttpTlsTest : public testing::TlsFixture {};

TEST_F(HttpTlsTest, ABrowserThatKnowsTheAuthorityIsAnswered) {
  StartTlsServer();
  Browser browser(port_, folder_.File("a/ca.crt"));
  EXPECT_FALSE(browser.error()) << browser.error().message();
  browser.Send("GET /api/v1/job HTTP/1.1");
  const std::string answer = browser.ReadAll();
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200"));
  for (const auto& [name, value] : SecurityHeaders()) {
    EXPECT_THAT(answer, HasSubstr(std::string(name) + ": " + std::string(value)));
  }
  EXPECT_EQ(browser.error(), asio::error::eof) << "it ended properly, so nothing was cut off";
}

TEST_F(HttpTlsTest, AStreamIsWrittenWhileItIsRead) {
  StartTlsServer();
  Browser browser(port_, folder_.File("a/ca.crt"));
  browser.Send("GET /api/v1/stream?after=0 HTTP/1.1");
  EXPECT_THAT(browser.ReadUntil("\r\n\r\n"), StartsWith("HTTP/1.1 200"));
  job_.AddEvent();
  server_->NotifyEvents();
  EXPECT_THAT(browser.ReadUntil("\"id\":1"), HasSubstr("\"id\":1"));
}

TEST_F(HttpTlsTest, AClientOfPlainHttpIsToldSo) {
  StartTlsServer();
  const auto client = Connect();
  const testing::Answer answer = client->Ask(client->Get("/api/v1/job"));
  EXPECT_EQ(answer.status, 400);
  EXPECT_THAT(answer.body, HasSubstr("use https://"));
}

TEST_F(HttpTlsTest, WhoSaysNothingIsNotWaitedFor) {
  HttpServerOptions options = Options();
  options.http.header_time_max = std::chrono::milliseconds(20);
  StartTlsServer(options);
  const auto client = Connect();
  EXPECT_EQ(client->ReceiveUntil("never"), "") << "the connection ends";
}

TEST_F(HttpTlsTest, WhoSaysNothingGivesWayToOthers) {
  HttpServerOptions options = Options();
  options.http.connections_max = 1;
  StartTlsServer(options);
  const auto silent = Connect();
  Browser browser(port_, folder_.File("a/ca.crt"));
  browser.Send("GET /api/v1/job HTTP/1.1");
  EXPECT_THAT(browser.ReadAll(), StartsWith("HTTP/1.1 200"));
}

TEST_F(HttpTlsTest, TheFilesAreChecked) {
  HttpServerOptions options = Options();
  options.tls = ServerTls{
      .files = CredentialFilesOf(Certificates("a"), Role::kScaler), .job_id = "jb", .clients = {}};
  HttpServer server(options, &job_, &system_);
  EXPECT_THAT(server.Listen().status(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("belongs to job ja")));
}

}  // namespace
}  // namespace muster::scaler::rest
