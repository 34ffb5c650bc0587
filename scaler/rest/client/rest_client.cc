#include "scaler/rest/client/rest_client.h"

#include <fmt/format.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/beast/core/error.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <utility>

#include "base/address.h"
#include "base/clock.h"
#include "base/status.h"
#include "scaler/model/model_json.h"
#include "scaler/rest/router.h"

namespace muster::scaler::rest {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using boost::system::error_code;

constexpr uint64_t kAnswerBytesMax = 64 << 20;

/// One connection, one request, one answer.
class Exchange {
 public:
  explicit Exchange(const RestClientOptions& options) : options_(options) {}

  absl::StatusOr<nlohmann::json> Run(http::request<http::string_body> request) {
    const std::string address = JoinHostPort(options_.host, options_.port);
    MUSTER_ASSIGN_OR_RETURN(const std::vector<std::string> numbers, ResolveHost(options_.host));
    request.set(http::field::host, address);
    request.set(http::field::authorization, "Bearer " + options_.token);
    request.prepare_payload();
    stream_.expires_after(options_.deadline);
    error_code error;
    const asio::ip::tcp::endpoint to(asio::ip::make_address(numbers.front(), error), options_.port);
    if (!error) error = Await([&](auto done) { stream_.async_connect(to, std::move(done)); });
    if (error) {
      return absl::UnavailableError(
          fmt::format("nothing answers at {} ({})", address, error.message()));
    }
    if (!options_.tls.has_value()) return Talk(stream_, address, request);
    const SystemClock clock;
    MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<TlsContext> context,
                            TlsContext::Make(*options_.tls, &clock));
    asio::ssl::stream<beast::tcp_stream&> tls(stream_, *context->Get());
    error = Await(
        [&](auto done) { tls.async_handshake(asio::ssl::stream_base::client, std::move(done)); });
    if (error) {
      return absl::UnavailableError(fmt::format("no TLS connection with {}: {}", address,
                                                TlsErrorText(error, tls.native_handle())));
    }
    return Talk(tls, address, request);
  }

 private:
  template <typename Stream>
  absl::StatusOr<nlohmann::json> Talk(Stream& stream, const std::string& address,
                                      const http::request<http::string_body>& request) {
    error_code error =
        Await([&](auto done) { http::async_write(stream, request, std::move(done)); });
    http::response_parser<http::string_body> parser;
    parser.body_limit(kAnswerBytesMax);
    // A server that refuses a request may answer before it has read all of it.
    if (error != beast::error::timeout) {
      error = Await([&](auto done) { http::async_read(stream, buffer_, parser, std::move(done)); });
    }
    if (error) {
      return absl::DeadlineExceededError(fmt::format(
          "no whole answer from {} ({}); an order may have been carried out", address,
          error == beast::error::timeout ? fmt::format("within {} ms", options_.deadline.count())
                                         : error.message()));
    }
    return ReadAnswer(static_cast<int>(parser.get().result_int()), parser.get().body());
  }

  /// Starts an operation and waits for it; the stream's deadline ends it, too.
  template <typename Start>
  error_code Await(Start start) {
    error_code result;
    start([&result](error_code error, auto&&...) { result = error; });
    io_.restart();
    if (options_.on_slow && !told_) {
      io_.run_until(slow_at_);
      told_ = !io_.stopped();
      if (told_) options_.on_slow();
    }
    io_.run();
    return result;
  }

  const RestClientOptions& options_;
  asio::io_context io_{1};
  beast::tcp_stream stream_{io_};
  beast::flat_buffer buffer_;
  const std::chrono::steady_clock::time_point slow_at_ =
      std::chrono::steady_clock::now() + options_.slow_after;
  bool told_ = false;
};

absl::StatusCode CodeOf(int status) {
  switch (status) {
    case 401:
      return absl::StatusCode::kUnauthenticated;
    case 404:
      return absl::StatusCode::kNotFound;
    case 409:
      return absl::StatusCode::kFailedPrecondition;
    case 429:
    case 503:
      return absl::StatusCode::kUnavailable;
    case 501:
      return absl::StatusCode::kUnimplemented;
    case 504:
      return absl::StatusCode::kDeadlineExceeded;
    default:
      return status >= 500 ? absl::StatusCode::kInternal : absl::StatusCode::kInvalidArgument;
  }
}

/// What a problem document says; its detail names the fields that are wrong, too.
std::string WordsOf(const nlohmann::json& problem, int status) {
  const bool says = problem.is_object() && problem.contains("detail") &&
                    problem["detail"].is_string() && problem["detail"] != "";
  return says ? problem["detail"].get<std::string>() : fmt::format("the answer is {}", status);
}

template <typename T>
absl::StatusOr<T> As(const absl::StatusOr<nlohmann::json>& document) {
  if (!document.ok()) return document.status();
  absl::StatusOr<T> value = FromJson<T>(*document);
  if (!value.ok()) {
    return absl::InternalError(
        fmt::format("the answer is not understood: {}; is the scaler of "
                    "another version?",
                    Message(value.status())));
  }
  return value;
}

struct OrderCall {
  std::string path;
  nlohmann::json body = nlohmann::json::object();
};

OrderCall CallOf(const Route& route, const Arguments& arguments) {
  OrderCall call{.path = std::string(route.path)};
  for (const auto& [name, value] : arguments.values()) {
    const size_t at = call.path.find("{" + name + "}");
    if (at == std::string::npos) {
      std::visit([&](const auto& any) { call.body[name] = any; }, value);
    } else {
      call.path.replace(at, name.size() + 2, EncodePathPart(std::get<std::string>(value)));
    }
  }
  return call;
}

}  // namespace

absl::StatusOr<nlohmann::json> ReadAnswer(int status, const std::string& body) {
  nlohmann::json document = nlohmann::json::parse(body, nullptr, false);
  if (status >= 200 && status < 300) {
    if (!document.is_discarded()) return document;
    return absl::InternalError(fmt::format("the answer ({}) is no JSON: {:.100}", status, body));
  }
  const std::string words = WordsOf(document, status);
  return absl::Status(CodeOf(status), absl::string_view(words.data(), words.size()));
}

std::string EncodePathPart(std::string_view text) {
  std::string encoded;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '.' || c == '_' || c == '~';
    encoded += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return encoded;
}

absl::StatusOr<nlohmann::json> RestClient::Get(const std::string& target) const {
  return Exchange(options_).Run({http::verb::get, target, 11});
}

absl::StatusOr<nlohmann::json> RestClient::Post(const std::string& target,
                                                const nlohmann::json& body) const {
  http::request<http::string_body> request(http::verb::post, target, 11, Dump(body));
  request.set(http::field::content_type, "application/json");
  return Exchange(options_).Run(std::move(request));
}

absl::StatusOr<Job> RestClient::GetJob() const {
  return As<Job>(Get("/api/v1/job"));
}

absl::StatusOr<NodeList> RestClient::Nodes() const {
  return As<NodeList>(Get("/api/v1/nodes"));
}

absl::StatusOr<Node> RestClient::GetNode(const std::string& node) const {
  return As<Node>(Get("/api/v1/nodes/" + EncodePathPart(node)));
}

absl::StatusOr<EventList> RestClient::Events(uint64_t after, uint32_t limit) const {
  return As<EventList>(Get(fmt::format("/api/v1/events?after={}&limit={}", after, limit)));
}

absl::StatusOr<Explanation> RestClient::Explain(uint64_t event_id) const {
  return As<Explanation>(Get(fmt::format("/api/v1/events/{}", event_id)));
}

absl::StatusOr<PolicyList> RestClient::Policies() const {
  return As<PolicyList>(Get("/api/v1/policies"));
}

absl::StatusOr<Event> RestClient::Give(const Wish& wish) const {
  for (const Route& route : AllRoutes()) {
    if (route.kind != RouteKind::kAct) continue;
    const std::optional<Arguments> arguments = route.arguments_of(wish.order);
    if (!arguments.has_value()) continue;
    OrderCall call = CallOf(route, *arguments);
    if (!wish.reason.empty()) call.body[kReason] = wish.reason;
    return As<Event>(Post(call.path, call.body));
  }
  return absl::UnimplementedError("only policies order this");
}

}  // namespace muster::scaler::rest
