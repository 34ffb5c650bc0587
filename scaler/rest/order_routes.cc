#include "scaler/rest/order_routes.h"

#include <utility>

#include "base/words/limits.h"

namespace muster::scaler::rest {
namespace {

constexpr double kReasonCharactersMax = 200;
constexpr double kRetryShardsMax = 1'000;
constexpr double kMemoryBytesMin = 16 << 20;  // as in a job file
constexpr double kMemoryBytesMax = 1ull << 50;

void ReadArgument(const Arguments& from, std::string_view name, std::string* to) {
  *to = from.Text(name);
}
void ReadArgument(const Arguments& from, std::string_view name, uint32_t* to) {
  *to = static_cast<uint32_t>(*from.Integer(name));
}
void ReadArgument(const Arguments& from, std::string_view name, std::optional<uint64_t>* to) {
  *to = from.Integer(name);
}
void ReadArgument(const Arguments& from, std::string_view name, std::optional<double>* to) {
  *to = from.Number(name);
}
void ReadArgument(const Arguments& from, std::string_view name, std::vector<std::string>* to) {
  *to = from.Texts(name);
}

void WriteArgument(std::string_view name, const std::string& from, Arguments* to) {
  to->Set(name, from);
}
void WriteArgument(std::string_view name, uint32_t from, Arguments* to) {
  to->Set(name, uint64_t{from});
}
void WriteArgument(std::string_view name, const std::vector<std::string>& from, Arguments* to) {
  if (!from.empty()) to->Set(name, from);
}
template <typename T>
void WriteArgument(std::string_view name, const std::optional<T>& from, Arguments* to) {
  if (from.has_value()) to->Set(name, *from);
}

// The parts of a row. Each part adds its parameter, fills an order from arguments, and writes
// arguments for an order. Take() returns false if another route sends such an order.

/// An argument that fills a member.
template <typename T, typename Member>
struct Filled {
  Param param;
  Member T::* member;

  void Add(std::vector<Param>* params) const { params->push_back(param); }
  void Fill(const Arguments& arguments, T* order) const {
    ReadArgument(arguments, param.name, &(order->*member));
  }
  bool Take(const T& order, Arguments* arguments) const {
    WriteArgument(param.name, order.*member, arguments);
    return true;
  }
};
template <typename T, typename Member>
Filled(Param, Member T::*) -> Filled<T, Member>;

/// A member whose value follows from the path.
template <typename T, typename Member>
struct Fixed {
  Member T::* member;
  Member value;

  void Add(std::vector<Param>*) const {}
  void Fill(const Arguments&, T* order) const { order->*member = value; }
  bool Take(const T& order, Arguments*) const { return order.*member == value; }
};
template <typename T, typename Member>
Fixed(Member T::*, Member) -> Fixed<T, Member>;

/// The reason is sent with every order, but is no member of it.
struct Reason {
  void Add(std::vector<Param>* params) const {
    params->push_back({.name = kReason,
                       .in = ParamIn::kBody,
                       .kind = ParamKind::kText,
                       .meaning = "Why you give this order; the event of the order contains it",
                       .max = kReasonCharactersMax});
  }
  void Fill(const Arguments&, auto*) const {}
  bool Take(const auto&, Arguments*) const { return true; }
};

template <typename T, typename... Parts>
Route OrderRow(std::string_view path, std::string_view operation, std::string_view summary,
               Parts... parts) {
  Route route{.kind = RouteKind::kAct,
              .path = path,
              .operation = operation,
              .summary = summary,
              .schema = "Event",
              .status = 202,
              .errors = {409}};
  (parts.Add(&route.params), ...);
  route.order_of = [parts...](const Arguments& arguments) -> Order {
    T order;
    (parts.Fill(arguments, &order), ...);
    return order;
  };
  route.arguments_of = [parts...](const Order& given) -> std::optional<Arguments> {
    const T* const order = std::get_if<T>(&given);
    Arguments arguments;
    const bool ours = order != nullptr && (parts.Take(*order, &arguments) && ...);
    return ours ? std::optional(std::move(arguments)) : std::nullopt;
  };
  return route;
}

Param InPath(std::string_view name, std::string_view meaning) {
  return {.name = name, .in = ParamIn::kPath, .kind = ParamKind::kName, .meaning = meaning};
}
Param InBody(std::string_view name, ParamKind kind, std::string_view meaning, double min,
             double max) {
  return {
      .name = name, .in = ParamIn::kBody, .kind = kind, .meaning = meaning, .min = min, .max = max};
}
Param Needed(Param param) {
  param.required = true;
  return param;
}
Param NodeOfOrder() {
  return InPath("node", "worker-0, ps-1, master, ...");
}
Param PolicyOfOrder() {
  return InPath("policy", "out-of-memory, ...");
}

std::vector<Route> OfTheJob() {
  return {
      OrderRow<DrainJob>("/api/v1/job/drain", "drainJob",
                         "Give out no more shards, take snapshots, end. The next run continues",
                         Reason()),
      OrderRow<CancelJob>("/api/v1/job/cancel", "cancelJob",
                          "End the job now. What is committed stays, and the next run continues",
                          Reason()),
      OrderRow<RetryShards>("/api/v1/shards/retry", "retryShards", "Try FAILED shards again",
                            Filled(InBody("shards", ParamKind::kShardIds,
                                          "If absent, all FAILED shards", 1, kRetryShardsMax),
                                   &RetryShards::ids)),
      OrderRow<ScaleWorkers>(
          "/api/v1/workers/scale", "scaleWorkers",
          "Change the number of workers. This pauses the policy worker-count until it is resumed",
          Filled(Needed(InBody("workers", ParamKind::kInteger,
                               "How many workers the job is to have", 1, kWorkersMax)),
                 &ScaleWorkers::workers),
          Reason()),
      OrderRow<SetPaused>("/api/v1/policies/{policy}/pause", "pausePolicy",
                          "The policy decides nothing until it is resumed",
                          Filled(PolicyOfOrder(), &SetPaused::policy),
                          Fixed(&SetPaused::paused, true), Reason()),
      OrderRow<SetPaused>("/api/v1/policies/{policy}/resume", "resumePolicy",
                          "The policy decides again", Filled(PolicyOfOrder(), &SetPaused::policy),
                          Fixed(&SetPaused::paused, false), Reason()),
  };
}

std::vector<Route> OfNodes() {
  Route resize = OrderRow<ResizeNode>(
      "/api/v1/nodes/{node}/resize", "resizeNode", "Change limits, if possible without a restart",
      Filled(NodeOfOrder(), &ResizeNode::node),
      Filled(InBody("cpus", ParamKind::kNumber, "CPU limit in cores", 0.01, 4096),
             &ResizeNode::cpus),
      Filled(InBody("memory_bytes", ParamKind::kInteger, "Memory limit", kMemoryBytesMin,
                    kMemoryBytesMax),
             &ResizeNode::memory_bytes),
      Reason());
  resize.body_any_of = {"cpus", "memory_bytes"};
  return {
      OrderRow<RestartNode>("/api/v1/nodes/{node}/restart", "restartNode",
                            "End the process of a node and start another one",
                            Filled(NodeOfOrder(), &RestartNode::node), Reason(),
                            Filled(InBody("only_start", ParamKind::kInteger,
                                          "If the start number of the node is another one, the "
                                          "order is refused. So you can repeat it",
                                          1, kNumberMax),
                                   &RestartNode::only_start)),
      OrderRow<EndNode>("/api/v1/nodes/{node}/drain", "drainNode",
                        "A worker finishes its shards and leaves. A server takes snapshots and "
                        "continues to serve",
                        Filled(NodeOfOrder(), &EndNode::node), Reason()),
      std::move(resize),
  };
}

}  // namespace

std::vector<Route> OrderRoutes() {
  std::vector<Route> routes = OfTheJob();
  for (Route& route : OfNodes()) routes.push_back(std::move(route));
  return routes;
}

}  // namespace muster::scaler::rest
