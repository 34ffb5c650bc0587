#include "scaler/rest/client/rest_client.h"

#include <fmt/format.h>

#include <utility>

#include "base/address.h"
#include "base/clock.h"
#include "base/status.h"
#include "http/http_client.h"
#include "http/url/url.h"
#include "scaler/model/model_json.h"
#include "scaler/rest/router.h"

namespace muster::scaler::rest {
namespace {

constexpr uint64_t kAnswerBytesMax = 64 << 20;

/// Connects, sends one request, and reads its answer.
absl::StatusOr<nlohmann::json> Ask(const RestClientOptions& options, HttpRequest request,
                                   const std::string& target) {
  const std::string address = JoinHostPort(options.host, options.port);
  std::string refusal;
  if (options.tls.has_value()) {
    const SystemClock clock;
    MUSTER_ASSIGN_OR_RETURN(request.tls.authority,
                            LoadAuthority(options.tls->files.ca, clock.Wall()));
    request.tls.add_checks = [&](SSL_CTX* context) {
      RequireServer(context, *options.tls, &refusal);
    };
  }
  request.url =
      fmt::format("{}://{}{}", options.tls.has_value() ? "https" : "http", address, target);
  request.peer = address;
  request.headers.push_back("Authorization: Bearer " + options.token);
  request.headers.emplace_back("Expect:");
  request.times = {.connect = options.deadline, .whole = options.deadline};
  request.body_bytes_max = kAnswerBytesMax;
  request.on_slow = options.on_slow;
  request.slow_after = options.slow_after;
  request.may_repeat = false;
  const absl::StatusOr<HttpAnswer> answer = HttpClient(HttpProxies::kNone).Do(request);
  if (answer.ok()) return ReadAnswer(answer->status, answer->body);
  const std::string_view words = Message(answer.status());
  if (MayHaveArrived(answer.status())) {
    return absl::DeadlineExceededError(
        fmt::format("{}; an order may have been carried out", words));
  }
  if (!options.tls.has_value()) return absl::UnavailableError(std::string(words));
  return absl::UnavailableError(fmt::format("no TLS connection with {}: {}", address,
                                            refusal.empty() ? TlsErrorText(words) : refusal));
}

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

/// The text of a problem document. Its detail also names the fields that are wrong.
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
      call.path.replace(at, name.size() + 2, UrlEncode(std::get<std::string>(value)));
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

absl::StatusOr<nlohmann::json> RestClient::Get(const std::string& target) const {
  return Ask(options_, {}, target);
}

absl::StatusOr<nlohmann::json> RestClient::Post(const std::string& target,
                                                const nlohmann::json& body) const {
  const std::string text = Dump(body);
  return Ask(options_,
             {.method = "POST", .headers = {"Content-Type: application/json"}, .body = text},
             target);
}

absl::StatusOr<Job> RestClient::GetJob() const {
  return As<Job>(Get("/api/v1/job"));
}

absl::StatusOr<NodeList> RestClient::Nodes() const {
  return As<NodeList>(Get("/api/v1/nodes"));
}

absl::StatusOr<Node> RestClient::GetNode(const std::string& node) const {
  return As<Node>(Get("/api/v1/nodes/" + UrlEncode(node)));
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
