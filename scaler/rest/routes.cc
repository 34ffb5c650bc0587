#include <fmt/format.h>

#include "base/status.h"
#include "base/text.h"
#include "base/words/limits.h"
#include "scaler/model/model_json.h"
#include "scaler/rest/metrics_page.h"
#include "scaler/rest/openapi.h"
#include "scaler/rest/order_routes.h"
#include "scaler/rest/router.h"

namespace muster::scaler::rest {
namespace {

constexpr double kPageMax = 1000;
constexpr double kSamplesBackS = 6 * 3600;  // as far as figures are kept

template <typename T>
Response Document(const T& value) {
  Response response;
  response.body = Dump(ToJson(value)) + "\n";
  return response;
}
template <typename T>
absl::StatusOr<Response> Json(const absl::StatusOr<T>& value) {
  if (!value.ok()) return value.status();
  return Document(*value);
}

/// Answers with one part of the picture.
template <auto kPart>
absl::StatusOr<Response> Shows(const Arguments&, Backend& backend) {
  MUSTER_ASSIGN_OR_RETURN(const auto picture, backend.job.Look());
  return Document((*picture).*kPart);
}

Param NodeParam() {
  return {.name = "node",
          .in = ParamIn::kPath,
          .kind = ParamKind::kName,
          .meaning = "worker-0, ps-1, master, ..."};
}
Param Number(std::string_view name, std::string_view meaning, double min, double max,
             std::optional<uint64_t> absent) {
  return {.name = name,
          .kind = ParamKind::kInteger,
          .meaning = meaning,
          .min = min,
          .max = max,
          .absent = absent};
}
Param PathNumber(std::string_view name, std::string_view meaning, double max) {
  return {.name = name,
          .in = ParamIn::kPath,
          .kind = ParamKind::kInteger,
          .meaning = meaning,
          .max = max};
}
Param Offset() {
  return Number("offset", "How many to leave out at the beginning", 0, kNumberMax, 0);
}
Param Limit() {
  return Number("limit", "How many at most", 1, kPageMax, 100);
}
Param After() {
  return Number("after", "Only events with larger ids", 0, kNumberMax, 0);
}

std::vector<Route> OpenRoutes() {
  return {
      {.kind = RouteKind::kOpen,
       .path = "/healthz",
       .operation = "health",
       .summary = "Whether the scaler answers. It says nothing about the job",
       .content_type = "application/json",
       .handler = [](const Arguments&, Backend&) -> absl::StatusOr<Response> {
         Response response;
         response.body = "{\"status\":\"ok\"}\n";
         return response;
       }},
      {.path = "/openapi.json",
       .operation = "openapi",
       .summary = "This description",
       .content_type = "application/json",
       .handler = [](const Arguments&, Backend&) -> absl::StatusOr<Response> {
         Response response;
         response.body = OpenApiText();
         return response;
       }},
      {.path = "/metrics",
       .operation = "metrics",
       .summary = "For Prometheus, text format 0.0.4",
       .content_type = kMetricsContentType,
       .handler = [](const Arguments&, Backend& backend) -> absl::StatusOr<Response> {
         MUSTER_ASSIGN_OR_RETURN(const auto picture, backend.job.Look());
         Response response;
         response.content_type = kMetricsContentType;
         response.body = MetricsText(*picture, backend.stats);
         return response;
       }},
  };
}

std::vector<Route> JobRoutes() {
  return {
      {.path = "/api/v1/job",
       .operation = "getJob",
       .summary = "State, progress, counters",
       .schema = "Job",
       .handler = Shows<&Picture::job>},
      {.path = "/api/v1/datasets",
       .operation = "listDatasets",
       .summary = "Datasets with their epochs",
       .schema = "DatasetList",
       .handler = Shows<&Picture::datasets>},
      {.path = "/api/v1/datasets/{dataset}/epochs/{epoch}/shards",
       .operation = "mapShards",
       .summary = "The state of every shard of one epoch. Neighbours in the same state are one run",
       .params = {PathNumber("dataset", "The index of the dataset in the job file, from 0", 65535),
                  PathNumber("epoch", "From 0", 4294967295.0)},
       .schema = "ShardMap",
       .errors = {404},
       .handler =
           [](const Arguments& a, Backend& b) {
             return Json(b.job.MapOfShards(static_cast<uint32_t>(*a.Integer("dataset")),
                                           static_cast<uint32_t>(*a.Integer("epoch"))));
           }},
      {.path = "/api/v1/shards",
       .operation = "listShards",
       .summary = "Shards that are in work, done but not yet committed, or failed",
       .params = {{.name = "state",
                   .kind = ParamKind::kChoice,
                   .meaning = "Only shards in this state; if absent, all three",
                   .choices = {"leased", "done", "failed"}},
                  Offset(),
                  Limit()},
       .schema = "ShardPage",
       .handler =
           [](const Arguments& a, Backend& b) {
             return Json(b.job.Shards({.state = a.Text("state"),
                                       .offset = *a.Integer("offset"),
                                       .limit = static_cast<uint32_t>(*a.Integer("limit"))}));
           }},
      {.path = "/api/v1/partitions",
       .operation = "listPartitions",
       .summary = "Partitions of the weights: owner, size, load",
       .params = {Offset(), Limit()},
       .schema = "PartitionPage",
       .handler =
           [](const Arguments& a, Backend& b) {
             return Json(b.job.Partitions(*a.Integer("offset"),
                                          static_cast<uint32_t>(*a.Integer("limit"))));
           }},
  };
}

std::vector<Route> NodeRoutes() {
  return {
      {.path = "/api/v1/nodes",
       .operation = "listNodes",
       .summary = "Processes with limits and usage",
       .schema = "NodeList",
       .handler = Shows<&Picture::nodes>},
      {.path = "/api/v1/nodes/{node}",
       .operation = "getNode",
       .summary = "One process",
       .params = {NodeParam()},
       .schema = "Node",
       .errors = {404},
       .handler = [](const Arguments& a, Backend& b) -> absl::StatusOr<Response> {
         MUSTER_ASSIGN_OR_RETURN(const auto picture, b.job.Look());
         MUSTER_ASSIGN_OR_RETURN(const Node* node, FindNode(*picture, a.Text("node")));
         return Document(*node);
       }},
      {.path = "/api/v1/nodes/{node}/logs",
       .operation = "getLogs",
       .summary = "The last lines of a node's log, or the lines after an offset",
       .params = {NodeParam(), Number("lines", "How many lines at most", 1, 5000, 100),
                  Number("offset", "The lines from this byte on; if absent, the last lines", 0,
                         kNumberMax, std::nullopt)},
       .schema = "LogChunk",
       .errors = {404},
       .handler =
           [](const Arguments& a, Backend& b) {
             return Json(
                 b.job.Logs(a.Text("node"), {.offset = a.Integer("offset"),
                                             .lines = static_cast<uint32_t>(*a.Integer("lines"))}));
           }},
      {.path = "/api/v1/samples",
       .operation = "getSamples",
       .summary = "Figures over time, for charts",
       .params = {{.name = "node",
                   .kind = ParamKind::kName,
                   .meaning = "Only figures of this node; if absent, of all"},
                  Number("after_us",
                         "Only samples from after this time, in microseconds since the Unix epoch",
                         0, kNumberMax, 0),
                  Number("window_s", "Only samples of the newest seconds", 1, kSamplesBackS, 600)},
       .schema = "Samples",
       .errors = {404},
       .handler =
           [](const Arguments& a, Backend& b) {
             return Json(
                 b.job.GetSamples({.node = a.Text("node"),
                                   .after_wall_us = *a.Integer("after_us"),
                                   .window_s = static_cast<double>(*a.Integer("window_s"))}));
           }},
  };
}

std::vector<Route> EventRoutes() {
  return {
      {.path = "/api/v1/events",
       .operation = "listEvents",
       .summary =
           "Decisions with their evidence, outcomes, exits, orders, notes. The oldest comes first",
       .params = {After(), Limit()},
       .schema = "EventList",
       .handler =
           [](const Arguments& a, Backend& b) {
             return Json(
                 b.job.Events(*a.Integer("after"), static_cast<uint32_t>(*a.Integer("limit"))));
           }},
      {.path = "/api/v1/events/{event}",
       .operation = "explainEvent",
       .summary = "One event with its cause and its effects",
       .params = {PathNumber("event", "Its id", kNumberMax)},
       .schema = "Explanation",
       .errors = {404},
       .handler = [](const Arguments& a,
                     Backend& b) { return Json(b.job.Explain(*a.Integer("event"))); }},
      {.kind = RouteKind::kStream,
       .path = "/api/v1/stream",
       .operation = "stream",
       .summary =
           "Server-sent events without an end: `event` (with the id of the event) and, every "
           "second, `status`",
       .params = {{.name = "topics",
                   .kind = ParamKind::kChoices,
                   .meaning = "What to send; if absent, both",
                   .choices = {"events", "status"}},
                  Number("after",
                         "Events after this id, like the header Last-Event-ID; if absent, "
                         "only new events",
                         0, kNumberMax, std::nullopt)},
       .content_type = "text/event-stream",
       .handler = [](const Arguments& a, Backend& b) -> absl::StatusOr<Response> {
         StreamRequest stream;
         if (a.Has("topics")) {
           stream.events = stream.status = false;
           for (const std::string& topic : a.Texts("topics")) {
             (topic == "events" ? stream.events : stream.status) = true;
           }
         }
         if (a.Has("after")) {
           stream.after = *a.Integer("after");
         } else {
           MUSTER_ASSIGN_OR_RETURN(const auto picture, b.job.Look());
           stream.after = picture->job.last_event_id;
         }
         Response response;
         response.content_type = "text/event-stream";
         response.stream = stream;
         return response;
       }},
      {.path = "/api/v1/policies",
       .operation = "listPolicies",
       .summary = "Policies, with their thresholds and whether they are paused",
       .schema = "PolicyList",
       .handler = Shows<&Picture::policies>},
  };
}

}  // namespace

const std::vector<Route>& AllRoutes() {
  static const std::vector<Route>* const kRoutes = [] {
    auto* routes = new std::vector<Route>();
    for (const auto& part :
         {OpenRoutes(), JobRoutes(), NodeRoutes(), EventRoutes(), OrderRoutes()}) {
      routes->insert(routes->end(), part.begin(), part.end());
    }
    for (Route& route : *routes) {
      const bool in_path = route.path.find('{') != std::string_view::npos;
      if (in_path && route.kind == RouteKind::kAct) route.errors.push_back(404);
    }
    return routes;
  }();
  return *kRoutes;
}

}  // namespace muster::scaler::rest
