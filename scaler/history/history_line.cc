#include "scaler/history/history_line.h"

#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "scaler/history/json_number.h"

namespace muster::scaler {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using Json = nlohmann::json;

constexpr int kVersion = 1;
constexpr size_t kNameMax = 256;
constexpr size_t kNodesMax = 10'000;

/// Converts times of a scaler's clock to wall time in milliseconds.
class WallClock {
 public:
  WallClock(WallTime wall, TimePoint now)
      : wall_(std::chrono::duration_cast<milliseconds>(wall)), now_(now) {}
  int64_t Millis(TimePoint at) const {
    if (at == TimePoint()) return 0;
    return (wall_ - std::chrono::round<milliseconds>(now_ - at)).count();
  }

 private:
  milliseconds wall_;
  TimePoint now_;
};

/// A time or a duration that is small enough to be added to others, and to be held in nanoseconds.
template <typename Duration>
Duration Bounded(const Json& json) {
  const Duration duration(WholeNumber<int64_t>(json));
  constexpr std::chrono::years kMost(200);
  if (duration < Duration(0) || duration > kMost) {
    throw std::out_of_range(fmt::format("{} is no time of ours", json.dump()));
  }
  return duration;
}
TimePoint FromMillis(const Json& json) {
  return TimePoint(Bounded<milliseconds>(json));
}
microseconds Micros(const Json& json) {
  return Bounded<microseconds>(json);
}

/// A name, or a short text, of bounded length.
std::string Text(const Json& json) {
  std::string text = json.get<std::string>();
  if (text.size() > kNameMax) throw std::length_error("a text of more than 256 bytes");
  return text;
}

template <typename Enum>
Enum Number(const Json& json, Enum last) {
  const auto number = WholeNumber<uint32_t>(json);
  if (number > static_cast<uint32_t>(last)) {
    throw std::out_of_range(fmt::format("number {} of a state, role, cause or action", number));
  }
  return static_cast<Enum>(number);
}

Json ToJson(const Resources& resources) {
  return Json::array({resources.cpus, resources.memory_bytes});
}
Resources ToResources(const Json& json) {
  return {.cpus = json.at(0).get<double>(), .memory_bytes = WholeNumber<uint64_t>(json.at(1))};
}

Json ToJson(NodeRole role, const NodeSample& sample, const WallClock& clock) {
  Json json = {clock.Millis(sample.at),        sample.cpu.count(),
               sample.throttled.count(),       sample.memory_bytes,
               sample.memory_peak_bytes,       sample.memory_limit_bytes,
               sample.memory_pressure_percent, sample.cpu_pressure_percent};
  if (role == NodeRole::kServer) {
    const ServerTotals& totals = sample.server;
    for (const uint64_t total : {totals.pulls, totals.rows, totals.parts, totals.peer_requests}) {
      json.push_back(total);
    }
    json.push_back(totals.serving.count());
    json.push_back(totals.peer_round_trip.count());
    json.push_back(totals.partitions_serving);
    json.push_back(totals.moved_bytes);
    return json;
  }
  const WorkerTotals& totals = sample.worker;
  json.push_back(totals.records);
  json.push_back(totals.minibatches);
  json.push_back(totals.shards_held);
  for (const microseconds time :
       {totals.computing, totals.waiting_shards, totals.waiting_pulls, totals.waiting_pushes}) {
    json.push_back(time.count());
  }
  if (totals.group_part != GroupPart::kNone) {
    json.push_back(totals.awaited_step);
    json.push_back(totals.peers_waiting);
    json.push_back(totals.group_part);
    json.push_back(totals.group_moved);
  }
  return json;
}

NodeSample ToSample(NodeRole role, const Json& json) {
  NodeSample sample{.at = FromMillis(json.at(0)),
                    .cpu = Micros(json.at(1)),
                    .throttled = Micros(json.at(2)),
                    .memory_bytes = WholeNumber<uint64_t>(json.at(3)),
                    .memory_peak_bytes = WholeNumber<uint64_t>(json.at(4)),
                    .memory_limit_bytes = WholeNumber<uint64_t>(json.at(5)),
                    .memory_pressure_percent = json.at(6).get<double>(),
                    .cpu_pressure_percent = json.at(7).get<double>()};
  if (role == NodeRole::kServer) {
    sample.server = {
        .pulls = WholeNumber<uint64_t>(json.at(8)),
        .rows = WholeNumber<uint64_t>(json.at(9)),
        .parts = WholeNumber<uint64_t>(json.at(10)),
        .moved_bytes = json.size() > 15 ? WholeNumber<uint64_t>(json.at(15)) : 0,
        .serving = Micros(json.at(12)),
        .peer_requests = WholeNumber<uint64_t>(json.at(11)),
        .peer_round_trip = Micros(json.at(13)),
        .partitions_serving = json.size() > 14 ? WholeNumber<uint32_t>(json.at(14)) : 0};
  } else {
    sample.worker = {.records = WholeNumber<uint64_t>(json.at(8)),
                     .minibatches = WholeNumber<uint64_t>(json.at(9)),
                     .computing = Micros(json.at(11)),
                     .waiting_shards = Micros(json.at(12)),
                     .waiting_pulls = Micros(json.at(13)),
                     .waiting_pushes = Micros(json.at(14)),
                     .shards_held = WholeNumber<uint32_t>(json.at(10)),
                     .awaited_step = json.size() > 16 ? WholeNumber<uint64_t>(json.at(15)) : 0,
                     .peers_waiting = json.size() > 16 ? WholeNumber<uint32_t>(json.at(16)) : 0};
    if (json.size() > 18) {
      sample.worker.group_part = Number(json.at(17), GroupPart::kJoin);
      sample.worker.group_moved = WholeNumber<uint64_t>(json.at(18));
    }
  }
  return sample;
}

HistoryNode ToNode(const Json& json) {
  HistoryNode node{.name = Text(json.at(0)),
                   .role = Number(json.at(1), NodeRole::kScaler),
                   .start = WholeNumber<uint32_t>(json.at(2)),
                   .state = Number(json.at(3), NodeState::kWaiting),
                   .started_at = FromMillis(json.at(4)),
                   .limits = ToResources(json.at(5))};
  if (json.size() > 6) node.sample = ToSample(node.role, json.at(6));
  return node;
}

Json ToJson(const NodeEnd& end, const WallClock& clock) {
  return {end.node,
          end.role,
          end.start,
          clock.Millis(end.at),
          end.cause,
          end.exit,
          end.progressed,
          end.memory_peak_bytes,
          end.memory_limit_bytes,
          end.exits,
          end.disruption};
}
NodeEnd ToEnd(const Json& json) {
  return {.node = Text(json.at(0)),
          .role = Number(json.at(1), NodeRole::kScaler),
          .start = WholeNumber<uint32_t>(json.at(2)),
          .at = FromMillis(json.at(3)),
          .cause = Number(json.at(4), EndCause::kDisrupted),
          .exit = Text(json.at(5)),
          .progressed = json.at(6).get<bool>(),
          .exits = json.size() > 9 ? WholeNumber<uint32_t>(json.at(9)) : 0,
          .memory_peak_bytes = WholeNumber<uint64_t>(json.at(7)),
          .memory_limit_bytes = WholeNumber<uint64_t>(json.at(8)),
          .disruption =
              json.size() > 10 ? Number(json.at(10), Disruption::kDeleted) : Disruption::kNone};
}

HistoryWait ToWait(const Json& json) {
  HistoryWait wait{.node = Text(json.at(0)),
                   .wait = Number(json.at(1), NodeWait::kUnreachable),
                   .since = FromMillis(json.at(2))};
  if (json.size() > 3) wait.placed_limits = ToResources(json.at(3));
  return wait;
}

ActionTaken ToTaken(const Json& json) {
  ActionTaken taken{.policy = Text(json.at(0)),
                    .target = Text(json.at(1)),
                    .action = Number(json.at(2), Action::kDumpStacks),
                    .at = FromMillis(json.at(3))};
  if (json.size() <= 5) return taken;
  taken.workers_before = WholeNumber<uint32_t>(json.at(4));
  taken.workers_after = WholeNumber<uint32_t>(json.at(5));
  return taken;
}

HistoryHead ToHead(const Json& json) {
  HistoryHead head{.run_id = Text(json.at("run")), .job = Text(json.at("job"))};
  JobShape& shape = head.shape;
  shape.budget = ToResources(json.at("budget"));
  shape.machine = ToResources(json.at("machine"));
  shape.workers_min = WholeNumber<uint32_t>(json.at("workers").at(0));
  shape.workers_max = WholeNumber<uint32_t>(json.at("workers").at(1));
  for (const Json& role : json.at("roles")) {
    shape.roles[Number(role.at(0), NodeRole::kScaler)] = {.requested = ToResources(role.at(1)),
                                                          .min = ToResources(role.at(2)),
                                                          .max = ToResources(role.at(3))};
  }
  for (const Json& role : json.at("earlier")) {
    shape.history[Number(role.at(0), NodeRole::kScaler)] = {
        .memory_peak_bytes = WholeNumber<uint64_t>(role.at(1)),
        .cpus_p95 = role.at(2).get<double>(),
        .runs = WholeNumber<uint32_t>(role.at(3))};
  }
  return head;
}

HistoryMoment ToMoment(const Json& json) {
  HistoryMoment moment{.at = FromMillis(json.at("t")),
                       .activity = Number(json.at("a"), Activity::kOver),
                       .master_heard = !json.contains("m") || json.at("m").get<bool>(),
                       .records_trained = WholeNumber<uint64_t>(json.at("r")),
                       .records_left = WholeNumber<uint64_t>(json.at("l"))};
  if (json.contains("b")) moment.backlog_records = WholeNumber<uint64_t>(json.at("b"));
  if (json.contains("i")) moment.idle_cpus = json.at("i").get<double>();
  const Json& nodes = json.at("n");
  if (nodes.size() > kNodesMax) throw std::length_error("more than 10,000 nodes");
  for (const Json& node : nodes) moment.nodes.push_back(ToNode(node));
  if (json.contains("w")) {
    for (const Json& wait : json.at("w")) moment.waits.push_back(ToWait(wait));
  }
  if (json.contains("e")) {
    for (const Json& end : json.at("e")) moment.ends.push_back(ToEnd(end));
  }
  if (json.contains("k")) {
    for (const Json& taken : json.at("k")) moment.taken.push_back(ToTaken(taken));
  }
  return moment;
}

/// Names and exits come from Muster or the kernel and may contain anything. The line is written all
/// the same.
std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string HistoryLine(const HistoryHead& head) {
  const JobShape& shape = head.shape;
  Json json = {{"v", kVersion},
               {"run", head.run_id},
               {"job", head.job},
               {"budget", ToJson(shape.budget)},
               {"machine", ToJson(shape.machine)},
               {"workers", {shape.workers_min, shape.workers_max}},
               {"roles", Json::array()},
               {"earlier", Json::array()}};
  for (const auto& [role, of] : shape.roles) {
    json["roles"].push_back({role, ToJson(of.requested), ToJson(of.min), ToJson(of.max)});
  }
  for (const auto& [role, of] : shape.history) {
    json["earlier"].push_back({role, of.memory_peak_bytes, of.cpus_p95, of.runs});
  }
  return Dump(json);
}

std::string HistoryLine(const JobView& view, WallTime wall, TimePoint sampled_before) {
  const WallClock clock(wall, view.now);
  Json json = {{"t", clock.Millis(view.now)},
               {"a", view.activity},
               {"r", view.records_trained},
               {"l", view.records_left},
               {"n", Json::array()}};
  if (!view.master_heard) json["m"] = false;
  if (view.backlog_records.has_value()) json["b"] = *view.backlog_records;
  if (view.idle_cpus.has_value()) json["i"] = *view.idle_cpus;
  for (const NodeView& node : view.nodes) {
    Json line = {
        node.name,          node.role, node.start, node.state, clock.Millis(node.started_at),
        ToJson(node.limits)};
    if (!node.samples.empty() && node.samples.back().at > sampled_before) {
      line.push_back(ToJson(node.role, node.samples.back(), clock));
    }
    json["n"].push_back(std::move(line));
    if (node.wait == NodeWait::kNone) continue;
    Json wait = {node.name, node.wait, clock.Millis(node.waits_since)};
    if (node.placed_limits.has_value()) wait.push_back(ToJson(*node.placed_limits));
    json["w"].push_back(std::move(wait));
  }
  for (const NodeEnd& end : view.ends) json["e"].push_back(ToJson(end, clock));
  for (const ActionTaken& taken : view.taken) {
    json["k"].push_back({taken.policy, taken.target, taken.action, clock.Millis(taken.at),
                         taken.workers_before, taken.workers_after});
  }
  return Dump(json);
}

absl::StatusOr<std::variant<HistoryHead, HistoryMoment>> ParseHistoryLine(std::string_view line) {
  if (line.size() > kHistoryLineMax) {
    return absl::DataLossError(fmt::format("a line of {} bytes", line.size()));
  }
  try {
    const Json json = Json::parse(line);
    if (!json.contains("v")) return ToMoment(json);
    const int version = json.at("v").get<int>();
    if (version != kVersion) {
      return absl::DataLossError(fmt::format("version {}, not {}", version, kVersion));
    }
    return ToHead(json);
  } catch (const std::exception& error) {
    return absl::DataLossError(error.what());
  }
}

}  // namespace muster::scaler
