#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "scaler/rest/http_message.h"
#include "scaler/rest/job_api.h"
#include "scaler/rest/parameters.h"
#include "scaler/rest/rest_stats.h"

namespace muster::scaler::rest {

/// What a handler can use.
struct Backend {
  JobApi& job;
  RestStats stats;
};

/// Answers a request whose arguments were checked.
using Handler = absl::StatusOr<Response> (*)(const Arguments& arguments, Backend& backend);

enum class RouteKind {
  kOpen,  // reads, and needs no token
  kRead,
  kAct,     // changes the job: POST with a JSON body
  kStream,  // reads without an end
};

/// One row of the routing table. Requests are dispatched by it, and /openapi.json is written from
/// it.
struct Route {
  RouteKind kind = RouteKind::kRead;
  /// Such as "/api/v1/nodes/{node}/logs". Names in braces are parameters of the path.
  std::string_view path;
  std::string_view operation;  // operationId
  std::string_view summary;
  std::vector<Param> params;
  /// The schema of the answer, a name in ModelSchemas(). "" for a text of `content_type` or any
  /// object.
  std::string_view schema;
  std::string_view content_type;
  int status = 200;
  /// At least one of these fields of the body must be present.
  std::vector<std::string_view> body_any_of;
  /// Errors besides those that every route may answer with.
  std::vector<int> errors;
  Handler handler = nullptr;  // only for reads
  /// Actions have these two functions instead of a handler. The first makes the order from the
  /// arguments of a request. The second makes the arguments from an order; none if another route
  /// sends this order.
  std::function<Order(const Arguments& arguments)> order_of;
  std::function<std::optional<Arguments>(const Order& order)> arguments_of;

  std::string_view method() const { return kind == RouteKind::kAct ? "POST" : "GET"; }
};

/// All routes of the interface.
const std::vector<Route>& AllRoutes();

/// A request that matches a route, with its arguments. It is ready to run.
struct Call {
  const Route* route = nullptr;
  Arguments arguments;
};

/// A path that some route has. `route` is null if no route of this path has the method. `allowed`
/// lists the methods that it has.
struct PathMatch {
  const Route* route = nullptr;
  std::string allowed;
};

/// Finds the route of a path and a method ("HEAD" counts as "GET"). None if no route has the path.
std::optional<PathMatch> FindRoute(std::span<const Route> routes, const Target& target,
                                   std::string_view method);

/// Checks everything that the route takes from path, query, headers and body.
std::variant<Call, Problem> CheckCall(const Route& route, const Target& target,
                                      const Request& request);

/// Runs the handler, or gives the order. Errors become problems.
Response RunCall(const Call& call, Backend& backend);

}  // namespace muster::scaler::rest
