#include "scaler/rest/router.h"

#include <gmock/gmock.h>

#include <set>

#include "scaler/rest/openapi.h"
#include "tests/scaler/rest/fake_job_api.h"
#include "tests/scaler/rest/schema_check.h"

namespace muster::scaler::rest {
namespace {

using testing::FakeJobApi;
using ::testing::HasSubstr;
using testing::SchemaCheck;

Target TargetOf(const std::string& text) {
  return std::get<Target>(ParseTarget(text));
}

/// What a request is answered with, from its route on.
Response Answer(JobApi* job, const std::string& method, const std::string& target,
                const std::string& body = "",
                std::vector<std::pair<std::string, std::string>> headers = {
                    {"content-type", "application/json"}}) {
  const Request request{method, target, std::move(headers), body};
  const Target parsed = TargetOf(target);
  const auto match = FindRoute(AllRoutes(), parsed, method);
  if (!match || !match->route) return {.status = match ? 405 : 404};
  const auto call = CheckCall(*match->route, parsed, request);
  if (const auto* problem = std::get_if<Problem>(&call)) return ToResponse(*problem);
  Backend backend{.job = *job, .stats = {}};
  return RunCall(std::get<Call>(call), backend);
}

TEST(RouterTest, PathsAndMethodsFindTheirRoute) {
  const auto find = [](const std::string& path, const std::string& method) {
    const auto match = FindRoute(AllRoutes(), TargetOf(path), method);
    if (!match) return std::string("none");
    return match->route ? std::string(match->route->operation) : "not " + match->allowed;
  };
  EXPECT_EQ(find("/api/v1/nodes", "GET"), "listNodes");
  EXPECT_EQ(find("/api/v1/nodes/", "GET"), "listNodes");
  EXPECT_EQ(find("/api/v1/nodes", "HEAD"), "listNodes");
  EXPECT_EQ(find("/api/v1/nodes/ps-0", "GET"), "getNode");
  EXPECT_EQ(find("/api/v1/nodes/ps-0/restart/", "POST"), "restartNode");
  EXPECT_EQ(find("/api/v1/nodes", "POST"), "not GET, HEAD");
  EXPECT_EQ(find("/api/v1/nodes/ps-0/restart", "GET"), "not POST");
  EXPECT_EQ(find("/api/v1/nodes/ps-0/restart", "DELETE"), "not POST");
  EXPECT_EQ(find("/api/v1/job", "head"), "not GET, HEAD");
  for (const std::string path : {"/", "/api", "/api/v1", "/api/v1/node", "/api/v1/nodes/a/b",
                                 "/api/v1/nodes//", "//api/v1/nodes", "/API/v1/nodes"}) {
    EXPECT_EQ(find(path, "GET"), "none") << path;
  }
}

TEST(RouterTest, ReadsAnswerWithTheirDocument) {
  FakeJobApi job;
  job.AddEvent();
  const SchemaCheck check(OpenApiDocument(AllRoutes())["components"]["schemas"]);
  const std::map<std::string, std::string> paths = {{"{node}", "ps-0"},
                                                    {"{dataset}", "0"},
                                                    {"{epoch}", "1"},
                                                    {"{event}", "1"},
                                                    {"{policy}", "straggler"}};
  for (const Route& route : AllRoutes()) {
    std::string path(route.path);
    for (const auto& [name, value] : paths) {
      if (const size_t at = path.find(name); at != std::string::npos) {
        path.replace(at, name.size(), value);
      }
    }
    const std::string body = path.ends_with("scale")    ? R"({"workers": 3})"
                             : path.ends_with("resize") ? R"({"cpus": 0.5})"
                                                        : "{}";
    const Response response = Answer(&job, std::string(route.method()), path, body);
    EXPECT_EQ(response.status, route.status) << path << " " << response.body;
    EXPECT_EQ(response.stream.has_value(), route.kind == RouteKind::kStream) << path;
    if (route.schema.empty()) continue;
    EXPECT_EQ(check.Check(nlohmann::json::parse(response.body),
                          {{"$ref", "#/" + std::string(route.schema)}}),
              "")
        << path;
  }
}

TEST(RouterTest, ActionsActAndAnswerWithTheEventTheyCaused) {
  FakeJobApi job;
  const Response response =
      Answer(&job, "POST", "/api/v1/nodes/worker-1/restart", R"({"reason": "stuck"})");
  EXPECT_EQ(response.status, 202);
  const auto event = nlohmann::json::parse(response.body);
  EXPECT_EQ(event["action"], "restart");
  EXPECT_EQ(event["target"], "worker-1");
  EXPECT_EQ(event["because"], "stuck");
  EXPECT_EQ(response.headers.at(0),
            std::make_pair(std::string("Location"), std::string("/api/v1/events/1")));
  EXPECT_EQ(job.GetNode("worker-1")->start, 2u);

  Answer(&job, "POST", "/api/v1/nodes/ps-0/resize", R"({"memory_bytes": 536870912})");
  EXPECT_EQ(job.GetNode("ps-0")->limits.memory_bytes, 512u << 20);
  EXPECT_EQ(job.GetNode("ps-0")->limits.cpus, 1);
  Answer(&job, "POST", "/api/v1/policies/straggler/pause", "{}");
  EXPECT_TRUE(job.Policies()->policies[1].paused);
  Answer(&job, "POST", "/api/v1/policies/straggler/resume", "{}");
  EXPECT_FALSE(job.Policies()->policies[1].paused);
  Answer(&job, "POST", "/api/v1/job/drain", "{}");
  EXPECT_EQ(job.GetJob()->state, JobState::kDraining);
}

TEST(RouterTest, ArgumentsReachTheJob) {
  FakeJobApi job;
  const auto get = [&job](const std::string& target) {
    return nlohmann::json::parse(Answer(&job, "GET", target).body);
  };
  EXPECT_EQ(get("/api/v1/shards?state=failed&limit=1&offset=1")["shards"][0]["id"], "0/0/1");
  EXPECT_EQ(get("/api/v1/shards?state=failed")["total"], 2);
  EXPECT_EQ(get("/api/v1/partitions?offset=60&limit=2")["partitions"][1]["partition"], 61);
  EXPECT_EQ(get("/api/v1/nodes/ps-0/logs?lines=2")["lines"].dump(), R"(["line 198","line 199"])");
  EXPECT_EQ(get("/api/v1/nodes/ps-0/logs?lines=1&offset=9")["lines"].dump(), R"(["line 001"])");
  job.AddEvent();
  job.AddEvent();
  EXPECT_EQ(get("/api/v1/events?after=1")["events"][0]["id"], 2);
  const Response stream = Answer(&job, "GET", "/api/v1/stream?topics=status");
  EXPECT_FALSE(stream.stream->events);
  EXPECT_TRUE(stream.stream->status);
  EXPECT_EQ(stream.stream->after, 2u);
}

TEST(RouterTest, AStreamGoesOnAfterTheLastEventId) {
  FakeJobApi job;
  const auto after = [&job](const std::string& target, const std::string& last_event_id) {
    const Response response = Answer(&job, "GET", target, "", {{"last-event-id", last_event_id}});
    return response.stream ? std::to_string(response.stream->after)
                           : std::to_string(response.status) + response.body;
  };
  EXPECT_EQ(after("/api/v1/stream", "7"), "7");
  EXPECT_EQ(after("/api/v1/stream?after=3", "7"), "7");
  EXPECT_EQ(after("/api/v1/stream?after=3", ""), "3");
  EXPECT_THAT(after("/api/v1/stream", "x7"), HasSubstr("Last-Event-ID"));
}

TEST(RouterTest, ErrorsAreProblemsThatSayWhatIsWrong) {
  FakeJobApi job;
  for (const auto& [method, target, body, status, text] :
       std::vector<std::tuple<std::string, std::string, std::string, int, std::string>>{
           {"GET", "/api/v1/nodes/worker-9", "", 404, "no node 'worker-9'"},
           {"GET", "/api/v1/nodes/Worker", "", 422, "node (path): 'Worker' is no name"},
           {"GET", "/api/v1/nodes/a%2fb", "", 422, "is no name"},
           {"GET", "/api/v1/events/0", "", 404, "no event 0"},
           {"GET", "/api/v1/events/-1", "", 422, "event (path)"},
           {"GET", "/api/v1/shards?limit=1001", "", 422, "limit (query)"},
           {"POST", "/api/v1/workers/scale", "{}", 422, "workers (body): is missing"},
           {"POST", "/api/v1/workers/scale", R"({"workers": 0})", 422, "from 1 to 10000"},
           {"POST", "/api/v1/workers/scale", R"({"workers": 9})", 409, "budget of 8"},
           {"POST", "/api/v1/nodes/ps-0/resize", "{}", 422, "cpus, memory_bytes"},
           {"POST", "/api/v1/nodes/ps-0/resize", R"({"memory_bytes": 16777215})", 422,
            "from 16777216"},
           {"POST", "/api/v1/nodes/ps-0/restart", R"({"only_start": 9})", 409, "start 1, not 9"},
           {"POST", "/api/v1/shards/retry", R"({"shards": ["0/0/9"]})", 409, "0/0/9 is not FAILED"},
           {"POST", "/api/v1/job/cancel", "", 400, "body is empty"}}) {
    const Response response = Answer(&job, method, target, body);
    EXPECT_EQ(response.status, status) << target;
    EXPECT_EQ(response.content_type, "application/problem+json");
    const auto problem = nlohmann::json::parse(response.body);
    EXPECT_EQ(problem["status"], status);
    EXPECT_THAT(std::string(problem["type"]), HasSubstr("urn:muster:problem:"));
    EXPECT_THAT(std::string(problem["detail"]), HasSubstr(text)) << target;
    nlohmann::json schemas;
    schemas["Problem"] = nlohmann::json::parse(ProblemSchemaText());
    const SchemaCheck check(schemas);
    EXPECT_EQ(check.Check(problem, {{"$ref", "#/Problem"}}), "");
  }
}

TEST(RouterTest, ActionsNeedJson) {
  FakeJobApi job;
  const auto status = [&job](std::vector<std::pair<std::string, std::string>> headers) {
    return Answer(&job, "POST", "/api/v1/job/drain", "{}", std::move(headers)).status;
  };
  EXPECT_EQ(status({{"content-type", "application/json"}}), 202);
  EXPECT_EQ(status({{"content-type", "Application/JSON ; charset=utf-8"}}), 202);
  for (const std::string type : {"", "text/plain", "application/x-www-form-urlencoded",
                                 "multipart/form-data", "application/jsonp"}) {
    EXPECT_EQ(status({{"content-type", type}}), 415) << type;
  }
  EXPECT_EQ(status({}), 415);
}

TEST(RouterTest, WhatTheJobSaysBecomesAStatus) {
  FakeJobApi job;
  for (const auto& [status, code] :
       std::vector<std::pair<absl::Status, int>>{{absl::UnavailableError("a"), 503},
                                                 {absl::DeadlineExceededError("a"), 504},
                                                 {absl::InternalError("a"), 500},
                                                 {absl::UnimplementedError("a"), 501},
                                                 {absl::OutOfRangeError("a"), 422},
                                                 {absl::PermissionDeniedError("a"), 403}}) {
    job.Fail(status);
    const Response response = Answer(&job, "GET", "/api/v1/job");
    EXPECT_EQ(response.status, code);
    EXPECT_EQ(nlohmann::json::parse(response.body)["detail"], "a");
    const bool retry = !response.headers.empty() && response.headers[0].first == "Retry-After";
    EXPECT_EQ(retry, code == 503 || code == 504);
  }
}

TEST(OpenApiTest, EveryRouteIsDescribedAndEveryReferenceIsThere) {
  const nlohmann::json document = OpenApiDocument(AllRoutes());
  std::set<std::string> operations;
  for (const Route& route : AllRoutes()) {
    const std::string method = route.method() == "POST" ? "post" : "get";
    const nlohmann::json& operation = document["paths"][std::string(route.path)][method];
    EXPECT_EQ(operation["operationId"], route.operation);
    EXPECT_TRUE(operations.insert(operation["operationId"]).second) << route.operation;
    EXPECT_TRUE(operation["responses"].contains(std::to_string(route.status)));
    EXPECT_EQ(operation["responses"].contains("401"), route.kind != RouteKind::kOpen);
    EXPECT_EQ(operation.contains("requestBody"), route.kind == RouteKind::kAct);
    for (const Param& param : route.params) {
      EXPECT_EQ(param.in == ParamIn::kPath,
                route.path.find("{" + std::string(param.name) + "}") != std::string::npos)
          << route.path << " " << param.name;
    }
  }
  const std::string text = document.dump();
  for (size_t at = 0; (at = text.find("#/components/schemas/", at)) != std::string::npos;) {
    at += 21;
    const std::string name = text.substr(at, text.find('"', at) - at);
    EXPECT_TRUE(document["components"]["schemas"].contains(name)) << name;
  }
  EXPECT_EQ(nlohmann::json::parse(OpenApiText()), document);
}

}  // namespace
}  // namespace muster::scaler::rest
