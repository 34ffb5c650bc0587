#include "scaler/simulate/described_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <string_view>
#include <utility>

namespace muster::scaler {
namespace {

using std::chrono::microseconds;
using std::chrono::seconds;

/// A minibatch makes this many requests: its pulls and its pushes.
constexpr double kRequestsEach = 2;
/// The bytes of a request and its answer.
constexpr double kBytesEach = 4'000;
/// A round trip, as workers see it, takes as long as this many services. The rest is for
/// connections and waiting in line.
constexpr double kRoundTrips = 4;
constexpr size_t kSimulatedSamplesMax = 660;

microseconds FromSeconds(double s) {
  return microseconds(static_cast<int64_t>(s * 1e6));
}

bool RunsNow(const NodeView& node) {
  return node.state == NodeState::kRunning || node.state == NodeState::kStarting;
}

/// For "worker-3", returns 3. None if the name is not that of such a node.
std::optional<uint32_t> NumberOf(std::string_view name, NodeRole role) {
  const std::string prefix = fmt::format("{}-", ToString(role));
  if (!name.starts_with(prefix)) return std::nullopt;
  name.remove_prefix(prefix.size());
  uint32_t number = 0;
  const auto [rest, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc() || rest != name.data() + name.size()) return std::nullopt;
  return number;
}

absl::Status CheckRole(const DescribedRole& role, NodeRole which) {
  const auto bad = [which](const std::string& what) {
    return absl::InvalidArgumentError(fmt::format("{}: {}", ToString(which), what));
  };
  if (role.replicas < 1 || role.replicas > DescribedSpec::kReplicasMax) {
    return bad(
        fmt::format("replicas is {}, must be 1 to {}", role.replicas, DescribedSpec::kReplicasMax));
  }
  if (role.time.count() <= 0) return bad("the time for its work must be more than 0");
  if (role.cpus <= 0) return bad("the CPU that it uses must be more than 0");
  if (role.limits.memory_bytes > 0 && role.memory_start > role.limits.memory_bytes) {
    return bad(fmt::format("it starts with {} of memory, more than its limit of {}",
                           BytesText(role.memory_start), BytesText(role.limits.memory_bytes)));
  }
  if (role.max.memory_bytes > 0 && role.limits.memory_bytes > role.max.memory_bytes) {
    return bad(fmt::format("its memory limit is {}, more than its maximum of {}",
                           BytesText(role.limits.memory_bytes), BytesText(role.max.memory_bytes)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckDescribed(const DescribedSpec& spec) {
  if (spec.duration < seconds(1) || spec.duration > DescribedSpec::kDurationMax) {
    return absl::InvalidArgumentError(
        fmt::format("duration is {} s, must be 1 s to a day", spec.duration.count()));
  }
  for (const auto& [role, which] :
       {std::pair(spec.server, NodeRole::kServer), std::pair(spec.worker, NodeRole::kWorker)}) {
    if (const absl::Status checked = CheckRole(role, which); !checked.ok()) return checked;
  }
  if (spec.machine.cpus <= 0 || spec.machine.memory_bytes == 0) {
    return absl::InvalidArgumentError("machine: cpu and memory must be more than 0");
  }
  const uint32_t workers_max = std::max(spec.workers_max, spec.worker.replicas);
  if (workers_max > DescribedSpec::kReplicasMax || spec.workers_min > spec.worker.replicas ||
      (spec.workers_max > 0 && spec.workers_max < spec.worker.replicas)) {
    return absl::InvalidArgumentError(fmt::format(
        "worker: replicas is {}, must be between minReplicas ({}) and maxReplicas ({}), "
        "which is at most {}",
        spec.worker.replicas, spec.workers_min, spec.workers_max, DescribedSpec::kReplicasMax));
  }
  for (const Happening& happening : spec.happenings) {
    if (happening.at < seconds(1) || happening.at > spec.duration) {
      return absl::InvalidArgumentError(
          fmt::format("something happens to {} at {} s: must be from 1 s to the job's duration of "
                      "{} s",
                      happening.node, happening.at.count(), spec.duration.count()));
    }
    const auto server = NumberOf(happening.node, NodeRole::kServer);
    const auto worker = NumberOf(happening.node, NodeRole::kWorker);
    if ((server.has_value() && *server < spec.server.replicas) ||
        (worker.has_value() && *worker < workers_max)) {
      continue;
    }
    return absl::InvalidArgumentError(
        fmt::format("there is no node '{}': servers are ps-0 to ps-{}, workers worker-0 to "
                    "worker-{}",
                    happening.node, spec.server.replicas - 1, workers_max - 1));
  }
  return absl::OkStatus();
}

DescribedJob::DescribedJob(const DescribedSpec& spec) : spec_(spec) {
  // The first time may be any but 0, which means never.
  view_.now = TimePoint(std::chrono::hours(1));
  view_.machine = spec_.machine;
  view_.budget = spec_.budget;
  view_.workers_min = spec_.workers_min == 0 ? spec_.worker.replicas : spec_.workers_min;
  view_.workers_max = spec_.workers_max == 0 ? spec_.worker.replicas : spec_.workers_max;
  view_.records_left = spec_.records;
  for (uint32_t i = 0; i < spec_.server.replicas; ++i) AddNode(NodeRole::kServer, i);
  for (uint32_t i = 0; i < spec_.worker.replicas; ++i) AddNode(NodeRole::kWorker, i);
}

const DescribedRole& DescribedJob::RoleOf(const NodeView& node) const {
  return node.role == NodeRole::kServer ? spec_.server : spec_.worker;
}

void DescribedJob::AddNode(NodeRole role, uint32_t number) {
  NodeView node{.name = fmt::format("{}-{}", ToString(role), number), .role = role};
  const DescribedRole& described = RoleOf(node);
  node.limits = described.limits;
  node.requested = described.limits;
  node.max = described.max;
  Node& state = nodes_[node.name];
  state = {};
  state.memory = static_cast<double>(described.memory_start);
  state.growth_per_minute = static_cast<double>(described.memory_growth_per_minute);
  state.starts_at = view_.now;
  view_.nodes.push_back(std::move(node));
}

void DescribedJob::Start(NodeView* node) {
  const Node former = nodes_.at(node->name);
  const DescribedRole& described = RoleOf(*node);
  Node& state = nodes_[node->name];
  state = {};
  state.growth_per_minute = former.growth_per_minute;
  // A server restores its rows. Memory that grew in one life only is gone.
  const bool keeps = node->role == NodeRole::kServer && node->start > 0;
  state.memory = keeps ? former.memory : static_cast<double>(described.memory_start);
  if (former.slow_stays) {
    state.slow = former.slow;
    state.slow_stays = true;
  }
  if (former.quota_stays) {
    state.quota = former.quota;
    state.quota_stays = true;
  }
  state.hangs = state.hangs_stay = former.hangs_stay;
  state.works_at = view_.now + described.start;
  state.progress_at_start = view_.records_trained;
  ++node->start;
  node->state = NodeState::kStarting;
  node->started_at = view_.now;
  node->samples.clear();
}

bool DescribedJob::HasRoom(const NodeView& node) const {
  const auto until = no_room_until_.find(node.name);
  return until == no_room_until_.end() || view_.now >= until->second;
}

void DescribedJob::Wait(NodeView* node) {
  node->state = NodeState::kWaiting;
  node->wait = NodeWait::kUnschedulable;
  node->wait_reason = "as described";
  node->waits_since = view_.now;
}

void DescribedJob::End(NodeView* node, EndCause cause, std::string exit) {
  if (!RunsNow(*node)) return;
  node->placed_limits = node->limits;
  Node& state = nodes_.at(node->name);
  const bool progressed =
      node->state == NodeState::kRunning && view_.records_trained > state.progress_at_start;
  RestartPolicy& exits = exits_.try_emplace(node->name, RestartPolicy::Options{}).first->second;
  ends_.push_back({.node = node->name,
                   .role = node->role,
                   .start = node->start,
                   .at = view_.now,
                   .cause = cause,
                   .exit = std::move(exit),
                   .progressed = progressed,
                   .exits = exits.exits(),
                   .memory_peak_bytes = static_cast<uint64_t>(state.memory),
                   .memory_limit_bytes = node->limits.memory_bytes});
  state.excused = cause == EndCause::kAsked || cause == EndCause::kDisrupted;
  if (!state.excused) {
    exits.OnExit(progressed ? RestartPolicy::Progress::kMade : RestartPolicy::Progress::kNone);
  }
  node->state = NodeState::kExited;
  state.starts_at = view_.now + seconds(1);
}

void DescribedJob::Tick() {
  view_.now += seconds(1);
  elapsed_ += seconds(1);
  if (failure_.empty()) {
    StartDue();
    for (const Happening& happening : spec_.happenings) {
      if (happening.at == elapsed_) Befall(happening);
    }
    ShareCpus();
    Work();
    GrowMemory();
    for (NodeView& node : view_.nodes) {
      if (RunsNow(node)) Sample(&node);
    }
  }
  view_.activity = ActivityNow();
  view_.ends = std::exchange(ends_, {});
  view_.taken = std::exchange(taken_, {});
}

void DescribedJob::StartDue() {
  for (NodeView& node : view_.nodes) {
    const Node& state = nodes_.at(node.name);
    const bool waits = node.state == NodeState::kPlanned || node.state == NodeState::kExited;
    const bool placed = node.state == NodeState::kWaiting && HasRoom(node);
    if (placed) node.wait = NodeWait::kNone;
    if (placed || (waits && view_.now >= state.starts_at)) {
      // A start that waited for its place keeps its number. Start() counts it again.
      if (placed) --node.start;
      Start(&node);
      if (!HasRoom(node)) Wait(&node);
    }
    if (node.state == NodeState::kStarting && view_.now >= nodes_.at(node.name).works_at) {
      node.state = NodeState::kRunning;
    }
  }
}

void DescribedJob::Befall(const Happening& happening) {
  const auto node = std::find_if(view_.nodes.begin(), view_.nodes.end(),
                                 [&](const NodeView& n) { return n.name == happening.node; });
  if (node == view_.nodes.end()) return;  // the worker does not exist now
  Node& state = nodes_.at(node->name);
  if (const auto* slow = std::get_if<Happening::Slow>(&happening.what)) {
    state.slow = slow->factor;
    state.slow_stays = happening.stays;
  } else if (const auto* quota = std::get_if<Happening::Quota>(&happening.what)) {
    state.quota = quota->cpus;
    state.quota_stays = happening.stays;
  } else if (const auto* exits = std::get_if<Happening::Exits>(&happening.what)) {
    End(&*node, exits->code == 0 ? EndCause::kClean : EndCause::kProgram,
        fmt::format("exit {}", exits->code));
  } else if (std::holds_alternative<Happening::Killed>(happening.what)) {
    End(&*node, EndCause::kPlatform, "SIGKILL");
  } else if (std::holds_alternative<Happening::Hangs>(happening.what)) {
    state.hangs = true;
    state.hangs_stay = happening.stays;
  } else if (const auto* preempted = std::get_if<Happening::Preempted>(&happening.what)) {
    const bool ran = RunsNow(*node);
    End(&*node, EndCause::kDisrupted, "SIGTERM");
    if (ran) ends_.back().disruption = Disruption::kPreempted;
    no_room_until_[node->name] = view_.now + preempted->no_room;
  } else {
    const double growth =
        static_cast<double>(std::get<Happening::Grows>(happening.what).bytes_per_minute);
    (happening.stays ? state.growth_per_minute : state.growth_of_life) += growth;
  }
}

void DescribedJob::ShareCpus() {
  double all = 0;
  // How many pulls and pushes go to each server.
  const double requests_each = requests_last_ / spec_.server.replicas;
  const double service_time = std::chrono::duration<double>(spec_.server.time).count();
  for (const NodeView& node : view_.nodes) {
    Node& state = nodes_.at(node.name);
    state.wanted_cpus = 0;
    if (!RunsNow(node) || state.hangs) continue;
    const DescribedRole& described = RoleOf(node);
    const double busy = node.role == NodeRole::kWorker || node.state == NodeState::kStarting
                            ? 1
                            : requests_each * service_time;
    state.wanted_cpus = std::min(described.cpus, described.cpus * busy + 0.01);
    all += state.wanted_cpus;
  }
  const double machine = std::min(1.0, spec_.machine.cpus / std::max(all, 1e-9));
  view_.idle_cpus = std::max(spec_.machine.cpus - all, 0.0);
  for (const NodeView& node : view_.nodes) {
    Node& state = nodes_.at(node.name);
    double most = state.wanted_cpus * machine;
    if (node.limits.cpus > 0) most = std::min(most, node.limits.cpus);
    if (state.quota > 0) most = std::min(most, state.quota);
    state.held_back = state.wanted_cpus > 0 ? most / state.wanted_cpus : 1;
  }
}

double DescribedJob::ServiceTime(const NodeView& server) const {
  const Node& state = nodes_.at(server.name);
  return std::chrono::duration<double>(spec_.server.time).count() * state.slow /
         std::max(state.held_back, 1e-3);
}

void DescribedJob::Work() {
  bool servers_serve = true;
  double service = 0;
  for (const NodeView& node : view_.nodes) {
    if (node.role != NodeRole::kServer) continue;
    servers_serve &= node.state == NodeState::kRunning && !nodes_.at(node.name).hangs;
    service = std::max(service, ServiceTime(node));
  }
  double minibatches = 0;
  for (NodeView& node : view_.nodes) {
    if (node.role != NodeRole::kWorker) continue;
    const double before = nodes_.at(node.name).minibatches;
    WorkOne(&node, servers_serve, kRoundTrips * service);
    minibatches += nodes_.at(node.name).minibatches - before;
  }
  trained_ += minibatches * spec_.records_per_minibatch;
  view_.records_trained = static_cast<uint64_t>(trained_);
  if (spec_.records > 0) {
    view_.records_left = spec_.records - std::min(spec_.records, view_.records_trained);
  }
  requests_last_ = minibatches * kRequestsEach * spec_.server.replicas;
  for (const NodeView& node : view_.nodes) {
    if (node.role != NodeRole::kServer || node.state != NodeState::kRunning) continue;
    Node& state = nodes_.at(node.name);
    const double requests = minibatches * kRequestsEach;
    state.requests += requests;
    state.serving += requests * ServiceTime(node);
    state.round_trip += requests * kRoundTrips * ServiceTime(node);
  }
}

void DescribedJob::WorkOne(NodeView* worker, bool servers_serve, double round_trip) {
  Node& state = nodes_.at(worker->name);
  if (worker->state != NodeState::kRunning || state.hangs) return;
  if (!servers_serve) {
    state.waiting_pulls += 1;
    return;
  }
  const double computing = std::chrono::duration<double>(spec_.worker.time).count() * state.slow /
                           std::max(state.held_back, 1e-3);
  const double pulls = kRequestsEach * round_trip;
  const double minibatches = 1 / (computing + pulls);
  state.minibatches += minibatches;
  state.records += minibatches * spec_.records_per_minibatch;
  state.computing += minibatches * computing;
  state.waiting_pulls += minibatches * pulls;
}

void DescribedJob::GrowMemory() {
  for (NodeView& node : view_.nodes) {
    if (node.state != NodeState::kRunning) continue;
    Node& state = nodes_.at(node.name);
    const bool grows = node.role == NodeRole::kWorker || requests_last_ > 0;
    if (grows) state.memory += (state.growth_per_minute + state.growth_of_life) / 60;
    const double most = static_cast<double>(RoleOf(node).memory_most);
    if (most > 0) state.memory = std::min(state.memory, std::max(most, 1.0));
    const double limit = static_cast<double>(node.limits.memory_bytes);
    if (limit <= 0 || state.memory <= limit) continue;
    state.memory = limit;
    ++kills_for_memory_;
    End(&node, EndCause::kKernelOutOfMemory, "SIGKILL");
  }
}

void DescribedJob::Sample(NodeView* node) {
  Node& state = nodes_.at(node->name);
  const double got = state.wanted_cpus * state.held_back;
  const bool quota = (state.quota > 0 && got >= state.quota * 0.99) ||
                     (node->limits.cpus > 0 && got >= node->limits.cpus * 0.99);
  state.cpu += got;
  if (quota) state.throttled += 1 - state.held_back;
  NodeSample sample{.at = view_.now,
                    .cpu = FromSeconds(state.cpu),
                    .throttled = FromSeconds(state.throttled),
                    .memory_bytes = static_cast<uint64_t>(state.memory),
                    .memory_peak_bytes = static_cast<uint64_t>(state.memory),
                    .memory_limit_bytes = node->limits.memory_bytes};
  const auto whole = [](double value) { return static_cast<uint64_t>(value); };
  if (node->role == NodeRole::kWorker) {
    sample.worker = {.records = whole(state.records),
                     .minibatches = whole(state.minibatches),
                     .computing = FromSeconds(state.computing),
                     .waiting_shards = FromSeconds(state.waiting_shards),
                     .waiting_pulls = FromSeconds(state.waiting_pulls),
                     .shards_held = node->state == NodeState::kRunning ? 2u : 0u};
  } else {
    sample.server = {.pulls = whole(state.requests / 2),
                     .rows = whole(state.requests * 50),
                     .parts = whole(state.requests / 2),
                     .moved_bytes = whole(state.requests * kBytesEach),
                     .serving = FromSeconds(state.serving),
                     .peer_requests = whole(state.requests),
                     .peer_round_trip = FromSeconds(state.round_trip)};
  }
  node->samples.push_back(sample);
  if (node->samples.size() > kSimulatedSamplesMax) {
    node->samples.erase(node->samples.begin(), node->samples.begin() + 60);
  }
}

Activity DescribedJob::ActivityNow() const {
  if (!failure_.empty() || elapsed_ >= spec_.duration) return Activity::kOver;
  if (spec_.records > 0 && view_.records_trained >= spec_.records) return Activity::kOver;
  bool workers = false;
  for (const NodeView& node : view_.nodes) {
    const bool runs = node.state == NodeState::kRunning;
    if (node.role == NodeRole::kWorker) workers |= runs;
    if (node.role == NodeRole::kServer && !runs) {
      return view_.records_trained > 0 ? Activity::kReplaying : Activity::kStarting;
    }
  }
  return workers && view_.records_trained > 0 ? Activity::kTraining : Activity::kStarting;
}

void DescribedJob::CarryOut(const ResizeNode& order) {
  for (NodeView& node : view_.nodes) {
    if (node.name != order.node) continue;
    node.limits = order.After(node.limits);
    // Our limit replaces the foreign quota, unless that one stays.
    Node& state = nodes_.at(node.name);
    if (!state.quota_stays) state.quota = 0;
  }
}

void DescribedJob::CarryOut(const RestartNode& order) {
  for (NodeView& node : view_.nodes) {
    if (node.name != order.node) continue;
    if (order.only_start.has_value() && *order.only_start != node.start) continue;
    if (order.limits.has_value()) node.limits = *order.limits;
    const bool ended = node.state == NodeState::kExited;
    if (ended && !order.charged && !std::exchange(nodes_.at(node.name).excused, true)) {
      exits_.at(node.name).Excuse();
    }
    End(&node, EndCause::kAsked, "SIGTERM");
    nodes_.at(node.name).starts_at = view_.now;
  }
}

void DescribedJob::CarryOut(const ScaleWorkers& order) {
  uint32_t workers = 0;
  for (const NodeView& node : view_.nodes) workers += node.role == NodeRole::kWorker ? 1 : 0;
  for (uint32_t number = 0; workers < order.workers && number < DescribedSpec::kReplicasMax;
       ++number) {
    if (FindNode(view_, fmt::format("{}-{}", ToString(NodeRole::kWorker), number)) != nullptr) {
      continue;
    }
    AddNode(NodeRole::kWorker, number);
    ++workers;
  }
  for (; workers > order.workers && workers > 1; --workers) {
    // A worker that waits for a place leaves first, then the newest.
    auto leaves = std::ranges::find(view_.nodes, NodeState::kWaiting, &NodeView::state);
    if (leaves == view_.nodes.end() || leaves->role != NodeRole::kWorker) {
      leaves = std::prev(view_.nodes.end());
    }
    nodes_.erase(leaves->name);
    view_.nodes.erase(leaves);
  }
}

void DescribedJob::CarryOut(const FailJob& order) {
  if (failure_.empty()) failure_ = order.reason;
}

}  // namespace muster::scaler
