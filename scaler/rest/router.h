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

/// What a handler works with.
struct Backend {
  JobApi& job;
  RestStats stats;
};

/// Answers a request whose arguments are checked.
using Handler = absl::StatusOr<Response> (*)(const Arguments& arguments, Backend& backend);

enum class RouteKind {
  kOpen,  // read, needs no token
  kRead,
  kAct,     // changes the job: POST with a JSON body
  kStream,  // read without an end
};

/// One row of the table from which requests are dispatched and /openapi.json is written.
struct Route {
  RouteKind kind = RouteKind::kRead;
  /// "/api/v1/nodes/{node}/logs"; names in braces are params of the path.
  std::string_view path;
  std::string_view operation;  // operationId
  std::string_view summary;
  std::vector<Param> params;
  /// Of the answer: a name among ModelSchemas(), "" for a text of `content_type` or any object.
  std::string_view schema;
  std::string_view content_type;
  int status = 200;
  /// Fields of the body of which one must be there.
  std::vector<std::string_view> body_any_of;
  /// Errors beyond those that every route may answer with.
  std::vector<int> errors;
  Handler handler = nullptr;  // of a read
  /// Of an action, in place of a handler: the order that it is; and what is to be sent for an
  /// order, nothing when that is another route's.
  std::function<Order(const Arguments& arguments)> order_of;
  std::function<std::optional<Arguments>(const Order& order)> arguments_of;

  std::string_view method() const { return kind == RouteKind::kAct ? "POST" : "GET"; }
};

/// All routes of the interface.
const std::vector<Route>& AllRoutes();

/// A request that found its route, with its arguments, ready to be run.
struct Call {
  const Route* route = nullptr;
  Arguments arguments;
};

/// A path that some route has. `route` is null when it has not this method; `allowed`: those it
/// has.
struct PathMatch {
  const Route* route = nullptr;
  std::string allowed;
};

/// The routes of a path, by method ("HEAD" is as good as "GET"); nothing when there are none.
std::optional<PathMatch> FindRoute(std::span<const Route> routes, const Target& target,
                                   std::string_view method);

/// Checks everything that the route takes from path, query, headers and body.
std::variant<Call, Problem> CheckCall(const Route& route, const Target& target,
                                      const Request& request);

/// Runs the handler, or gives the order; errors become problems.
Response RunCall(const Call& call, Backend& backend);

}  // namespace muster::scaler::rest
