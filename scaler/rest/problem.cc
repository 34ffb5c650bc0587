#include "scaler/rest/problem.h"

#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/status.h"
#include "scaler/model/model_json.h"

namespace muster::scaler::rest {
namespace {

constexpr std::array<std::pair<int, std::string_view>, 22> kPhrases = {{
    {200, "OK"},
    {202, "Accepted"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {408, "Request Timeout"},
    {409, "Conflict"},
    {413, "Content Too Large"},
    {414, "URI Too Long"},
    {415, "Unsupported Media Type"},
    {417, "Expectation Failed"},
    {421, "Misdirected Request"},
    {422, "Unprocessable Content"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {503, "Service Unavailable"},
    {504, "Gateway Timeout"},
    {505, "HTTP Version Not Supported"},
}};

/// How long a client should wait before it asks again, if the master is away.
constexpr int kAwayRetryS = 1;

}  // namespace

std::string_view ReasonPhrase(int status) {
  for (const auto& [code, phrase] : kPhrases) {
    if (code == status) return phrase;
  }
  return "Unknown";
}

Response ToResponse(const Problem& problem) {
  nlohmann::json json = {{"type", "urn:muster:problem:" + problem.code},
                         {"title", ReasonPhrase(problem.status)},
                         {"status", problem.status},
                         {"detail", problem.detail}};
  for (const FieldError& error : problem.errors) {
    json["errors"].push_back(
        {{"in", error.in}, {"field", error.field}, {"message", error.message}});
  }
  Response response;
  response.status = problem.status;
  response.content_type = "application/problem+json";
  response.body = Dump(json) + "\n";
  if (problem.status == 401) {
    response.headers.emplace_back("WWW-Authenticate", "Bearer realm=\"muster\"");
  }
  if (problem.retry_after_s > 0) {
    response.headers.emplace_back("Retry-After", std::to_string(problem.retry_after_s));
  }
  return response;
}

Problem ProblemOf(const absl::Status& status) {
  const auto problem = [&status](int code, std::string name, int retry_after_s = 0) {
    return Problem{.status = code,
                   .code = std::move(name),
                   .detail = std::string(Message(status)),
                   .errors = {},
                   .retry_after_s = retry_after_s};
  };
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kOutOfRange:
      return problem(422, "invalid-field");
    case absl::StatusCode::kNotFound:
      return problem(404, "not-found");
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kAlreadyExists:
      return problem(409, "conflict");
    case absl::StatusCode::kResourceExhausted:
      return problem(409, "budget");
    case absl::StatusCode::kPermissionDenied:
      return problem(403, "refused");
    case absl::StatusCode::kUnimplemented:
      return problem(501, "not-implemented");
    case absl::StatusCode::kUnavailable:
      return problem(503, "unavailable", kAwayRetryS);
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kCancelled:
      return problem(504, "no-answer", kAwayRetryS);
    default:
      return problem(500, "internal");
  }
}

std::string_view ProblemSchemaText() {
  return R"({
    "type": "object",
    "properties": {
      "type": {"type": "string", "pattern": "^urn:muster:problem:[a-z-]+$"},
      "title": {"type": "string"},
      "status": {"type": "integer", "minimum": 400, "maximum": 599},
      "detail": {"type": "string", "description": "What was wrong, with which value, what to do"},
      "errors": {
        "type": "array",
        "items": {
          "type": "object",
          "properties": {
            "in": {"type": "string", "enum": ["path", "query", "body", "header"]},
            "field": {"type": "string"},
            "message": {"type": "string"}
          },
          "required": ["in", "field", "message"],
          "additionalProperties": false
        }
      }
    },
    "required": ["type", "title", "status", "detail"],
    "additionalProperties": false
  })";
}

}  // namespace muster::scaler::rest
