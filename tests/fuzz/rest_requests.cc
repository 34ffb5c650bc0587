#include <nlohmann/json.hpp>
#include <string>
#include <variant>

#include "base/check.h"
#include "scaler/model/model_json.h"
#include "scaler/rest/rest_service.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/targets.h"
#include "tests/scaler/rest/fake_job_api.h"
#include "tests/scaler/rest/schema_check.h"

namespace muster::testing {
namespace {

using scaler::rest::Backend;
using scaler::rest::Call;
using scaler::rest::Request;
using scaler::rest::Response;
using scaler::rest::RestService;
using scaler::rest::RouteKind;

constexpr TimePoint kNow{std::chrono::seconds(100)};

std::string TakeUntil(std::string_view* text, std::string_view end) {
  const size_t at = std::min(text->find(end), text->size());
  std::string taken(text->substr(0, at));
  text->remove_prefix(std::min(text->size(), at + end.size()));
  return taken;
}

/// "METHOD TARGET", a line per header, an empty line, the body.
Request Parse(std::string_view text) {
  Request request;
  std::string first = TakeUntil(&text, "\n");
  std::string_view line = first;
  request.method = TakeUntil(&line, " ");
  request.target = std::string(line);
  while (!text.empty()) {
    first = TakeUntil(&text, "\n");
    if (first.empty()) break;
    line = first;
    std::string name = TakeUntil(&line, ": ");
    request.headers.emplace_back(std::move(name), std::string(line));
  }
  request.body = std::string(text);
  return request;
}

void CheckProblem(const Response& response) {
  MUSTER_CHECK(response.content_type == "application/problem+json");
  const auto problem = nlohmann::json::parse(response.body, nullptr, /*allow_exceptions=*/false);
  MUSTER_CHECK(problem.is_object() && problem["status"] == response.status);
  MUSTER_CHECK(scaler::rest::ReasonPhrase(response.status) != "Unknown");
}

void CheckDone(const Call& call, const Response& response) {
  if (response.status >= 400) return CheckProblem(response);
  MUSTER_CHECK(response.status == call.route->status);
  if (call.route->schema.empty()) return;
  static const scaler::rest::testing::SchemaCheck check(scaler::rest::ModelSchemas());
  const auto document = nlohmann::json::parse(response.body, nullptr, /*allow_exceptions=*/false);
  const std::string wrong =
      check.Check(document, {{"$ref", "#/" + std::string(call.route->schema)}});
  MUSTER_CHECK_MSG(wrong.empty(), wrong);
}

}  // namespace

void FuzzRestRequests(std::string_view bytes) {
  FuzzInput input(bytes);
  const uint64_t flags = input.Number(1);
  Request request = Parse(input.rest());
  const bool ours = (flags & 1) != 0;
  const bool token = (flags & 2) != 0;
  if (ours) request.headers.emplace_back("host", "localhost:1");
  if (token) request.headers.emplace_back("authorization", "Bearer not-to-be-guessed");

  RestService service(1, [] { return "not-to-be-guessed"; }, {}, {}, kNow);
  scaler::rest::RateLimiter connection = service.NewConnection(kNow);
  const auto admitted = service.Admit(request, &connection, kNow);
  if (const auto* response = std::get_if<Response>(&admitted)) return CheckProblem(*response);
  const auto& call = std::get<Call>(admitted);
  MUSTER_CHECK(token || call.route->kind == RouteKind::kOpen);
  MUSTER_CHECK(ours || request.CountOf("host") == 1);

  scaler::rest::testing::FakeJobApi job;
  job.AddEvent();
  Backend backend{.job = job, .stats = {}};
  CheckDone(call, RestService::Run(call, backend));
}

}  // namespace muster::testing
