#include "scaler/rest/router.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/status.h"
#include "base/text.h"
#include "scaler/model/model_json.h"

namespace muster::scaler::rest {
namespace {

bool IsParam(std::string_view segment) {
  return segment.starts_with('{');
}

/// For "{node}", returns "node".
std::string_view ParamName(std::string_view segment) {
  return segment.substr(1, segment.size() - 2);
}

/// Calls `visit(template segment)` for each segment. The path begins with a slash.
template <typename Visit>
void ForSegments(std::string_view path, const Visit& visit) {
  for (size_t begin = 1; begin < path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    visit(path.substr(begin, end - begin));
    begin = end + 1;
  }
}

bool Matches(std::string_view path, const std::vector<std::string>& segments) {
  size_t at = 0;
  bool same = true;
  ForSegments(path, [&](std::string_view segment) {
    same = same && at < segments.size() &&
           (IsParam(segment) ? !segments[at].empty() : segment == segments[at]);
    ++at;
  });
  return same && at == segments.size();
}

std::vector<FieldError> TakePath(const Route& route, const Target& target, Arguments* arguments) {
  std::vector<FieldError> errors;
  size_t at = 0;
  ForSegments(route.path, [&](std::string_view segment) {
    const std::string& text = target.segments[at++];
    if (!IsParam(segment)) return;
    const auto param = std::ranges::find_if(route.params, [&](const Param& p) {
      return p.in == ParamIn::kPath && p.name == ParamName(segment);
    });
    if (auto wrong = TakeText(*param, text, arguments)) errors.push_back(*std::move(wrong));
  });
  return errors;
}

/// True for "application/json", with or without parameters.
bool IsJson(std::string_view content_type) {
  const std::string_view type = content_type.substr(0, content_type.find(';'));
  std::string lower;
  for (const char c : type) {
    if (c != ' ' && c != '\t') lower.push_back(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  }
  return lower == "application/json";
}

/// Answers with the event that the order caused, and with the place where its effect can be seen.
absl::StatusOr<Response> GiveOrder(const Call& call, JobApi& job) {
  MUSTER_ASSIGN_OR_RETURN(const Event event, job.Give({call.route->order_of(call.arguments),
                                                       call.arguments.Text(kReason)}));
  Response response;
  response.status = call.route->status;
  response.headers.emplace_back("Location", fmt::format("/api/v1/events/{}", event.id));
  response.body = Dump(ToJson(event)) + "\n";
  return response;
}

}  // namespace

std::optional<PathMatch> FindRoute(std::span<const Route> routes, const Target& target,
                                   std::string_view method) {
  const std::string_view wanted = method == "HEAD" ? "GET" : method;
  std::optional<PathMatch> match;
  for (const Route& route : routes) {
    if (!Matches(route.path, target.segments)) continue;
    if (!match) match.emplace();
    if (route.method() == wanted) match->route = &route;
    if (!match->allowed.empty()) match->allowed += ", ";
    match->allowed += route.method() == "GET" ? "GET, HEAD" : route.method();
  }
  return match;
}

std::variant<Call, Problem> CheckCall(const Route& route, const Target& target,
                                      const Request& request) {
  Call call{.route = &route, .arguments = {}};
  if (std::vector<FieldError> errors = TakePath(route, target, &call.arguments); !errors.empty()) {
    std::string detail = fmt::format("{} (path): {}", errors[0].field, errors[0].message);
    return Problem{.status = 422,
                   .code = "invalid-field",
                   .detail = std::move(detail),
                   .errors = std::move(errors)};
  }
  if (auto problem = TakeQuery(route.params, target, &call.arguments)) return *std::move(problem);
  if (route.kind == RouteKind::kAct) {
    const std::string_view type = request.Header("content-type").value_or("");
    if (!IsJson(type)) {
      return Problem{.status = 415,
                     .code = "not-json",
                     .detail = fmt::format("an action needs 'Content-Type: application/json', "
                                           "this request has '{}'",
                                           ValidUtf8(type, 100)),
                     .errors = {}};
    }
    if (auto problem = TakeBody(route.params, route.body_any_of, request.body, &call.arguments)) {
      return *std::move(problem);
    }
  }
  if (route.kind == RouteKind::kStream) {
    // A browser's EventSource sends this header to continue where it stopped.
    if (const auto last = request.Header("last-event-id"); last && !last->empty()) {
      const auto param = std::ranges::find(route.params, "after", &Param::name);
      if (const auto wrong = TakeText(*param, *last, &call.arguments)) {
        return Problem{.status = 422,
                       .code = "invalid-field",
                       .detail = fmt::format("Last-Event-ID (header): {}", wrong->message),
                       .errors = {{"header", "Last-Event-ID", wrong->message}}};
      }
    }
  }
  return call;
}

Response RunCall(const Call& call, Backend& backend) {
  const Route& route = *call.route;
  absl::StatusOr<Response> response = route.kind == RouteKind::kAct
                                          ? GiveOrder(call, backend.job)
                                          : route.handler(call.arguments, backend);
  if (!response.ok()) return ToResponse(ProblemOf(response.status()));
  return *std::move(response);
}

}  // namespace muster::scaler::rest
