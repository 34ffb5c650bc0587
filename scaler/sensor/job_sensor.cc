#include "scaler/sensor/job_sensor.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

#include "scaler/sensor/newest_figures.h"

namespace muster::scaler {
namespace {

constexpr std::chrono::seconds kSteadyWindow{10};

EndCause CauseOf(const NodeExited& exit, const KeptNode& kept) {
  if (exit.disruption != Disruption::kNone && !kept.told_to_end) return EndCause::kDisrupted;
  if (exit.not_started) return EndCause::kNotStarted;
  switch (exit.memory_kill) {
    case MemoryKill::kKernel:
    case MemoryKill::kMachine:
      return EndCause::kKernelOutOfMemory;
    case MemoryKill::kOwn:
      return EndCause::kOwnOutOfMemory;
    case MemoryKill::kNone:
      break;
  }
  if (kept.told_to_end) return EndCause::kAsked;
  switch (Classify(exit.exit)) {
    case ExitKind::kClean:
      return EndCause::kClean;
    case ExitKind::kProgram:
      return EndCause::kProgram;
    case ExitKind::kNode:
      break;
  }
  return EndCause::kPlatform;
}

double InSeconds(std::chrono::microseconds time) {
  return std::chrono::duration<double>(time).count();
}

double RecordsPerSecond(const NodeView& node) {
  const std::optional<Span> span = NewestSpan(node, kSteadyWindow);
  if (!span.has_value()) return 0;
  return static_cast<double>(span->end->worker.records - span->begin->worker.records) /
         span->seconds();
}

}  // namespace

JobSensor::JobSensor(JobShape shape, const Options& options)
    : options_(options), shape_(std::move(shape)) {
  view_.budget = shape_.budget;
  view_.machine = shape_.machine;
  view_.workers_min = shape_.workers_min;
  view_.members_min = shape_.members_min;
  view_.workers_max = shape_.workers_max;
  view_.history = shape_.history;
}

void JobSensor::OnReading(std::vector<NodeReading> readings, TimePoint at, WallTime wall) {
  round_ = Round{.at = at, .wall = wall, .readings = {}};
  for (NodeReading& reading : readings) {
    std::string node = reading.node;
    round_->readings[std::move(node)] = std::move(reading);
  }
}

void JobSensor::OnStatus(const JobStatus& status, TimePoint asked_at) {
  if (master_.has_value() && asked_at < master_->asked_at) return;
  master_ = Digest(status, asked_at);
  WatchReplay();
}

void JobSensor::OnMachine(std::optional<std::chrono::microseconds> idle, TimePoint at) {
  if (!idle.has_value() || (!idle_.empty() && *idle < idle_.back().total)) idle_.clear();
  if (!idle.has_value()) return;
  idle_.push_back({at, *idle});
  while (idle_.back().at - idle_.front().at > options_.machine_window) idle_.pop_front();
}

std::optional<double> JobSensor::IdleCpus() const {
  if (idle_.empty()) return std::nullopt;
  const double seconds = std::chrono::duration<double>(idle_.back().at - idle_.front().at).count();
  if (seconds < std::chrono::duration<double>(options_.machine_window / 2).count()) {
    return std::nullopt;
  }
  return InSeconds(idle_.back().total - idle_.front().total) / seconds;
}

NodeEnd JobSensor::OnExit(const NodeExited& exit, const KeptNode& kept, TimePoint at) {
  NodeEnd end{.node = exit.node,
              .role = kept.role,
              .start = kept.starts,
              .at = at,
              .cause = CauseOf(exit, kept),
              .exit = ToString(exit.exit),
              .progressed = kept.progressed,
              .exits = kept.exits,
              .memory_peak_bytes = exit.memory_peak_bytes,
              .memory_limit_bytes = exit.memory_limit_bytes,
              .disruption = exit.disruption,
              .pid = exit.pid,
              .meaning = Explain(exit.exit),
              .last_words = exit.last_words,
              .disruption_text = exit.disruption_text};
  // The machine was short of memory, and the node did not reach a limit of its own. So no limit
  // would have helped.
  if (exit.memory_kill == MemoryKill::kMachine) end.memory_limit_bytes = 0;
  OnEnd(end);
  return end;
}

void JobSensor::WatchReplay() {
  const uint64_t done = master_->records_done;
  if (done < done_most_) {
    if (!replaying_since_.has_value()) replaying_since_ = master_->asked_at;
    return;
  }
  done_most_ = done;
  replaying_since_.reset();
}

const JobView& JobSensor::View(const std::vector<KeptNode>& kept, TimePoint now) {
  view_.now = std::max(view_.now, now);
  view_.ends = std::exchange(ends_, {});
  view_.taken = std::exchange(taken_, {});
  std::vector<NodeView> nodes;
  for (const KeptNode& each : kept) {
    if (each.role != NodeRole::kServer && each.role != NodeRole::kWorker) continue;
    // A node that is not started again does not belong to the job any more. Views show its end
    // once.
    const bool ended_now = std::any_of(view_.ends.begin(), view_.ends.end(),
                                       [&](const NodeEnd& end) { return end.node == each.name; });
    if (each.state == KeptNode::State::kFinished && !ended_now) {
      lives_.erase(each.name);
      continue;
    }
    nodes.push_back(NodeOf(each));
    NodeView& node = nodes.back();
    const MasterNode* seen = SeenOf(each);
    std::optional<MasterSays> says;
    if (seen != nullptr) says = seen->says;
    node.state = NodeStateOf(each, says, StateReader::kPolicies);
    node.drained = says.has_value() && says->drain == DrainState::kDrained;
    if (seen != nullptr) HearTotals(each, *seen, &node);
    if (round_.has_value() && each.runs()) AddSample(each, seen, &node);
  }
  view_.nodes = std::move(nodes);
  if (master_.has_value()) {
    view_.records_left = master_->training_left;
    view_.backlog_records = master_->backlog;
  }
  view_.idle_cpus = IdleCpus();
  view_.sources_away = master_.has_value() && master_->sources_away;
  view_.master_heard = master_.has_value() && view_.now - master_->asked_at <= options_.stale_after;
  view_.activity = ActivityNow(view_.now);
  if (round_.has_value()) AddFigures();
  round_.reset();
  return view_;
}

NodeView JobSensor::NodeOf(const KeptNode& kept) {
  const auto former = std::find_if(view_.nodes.begin(), view_.nodes.end(),
                                   [&](const NodeView& node) { return node.name == kept.name; });
  NodeLife& life = lives_[kept.name];
  NodeView node{.name = kept.name, .role = kept.role, .start = kept.starts};
  if (life.start() != kept.starts) {
    life = NodeLife(kept.starts);
  } else if (former != view_.nodes.end()) {
    node.samples = std::move(former->samples);
  }
  node.started_at = kept.started_at;
  node.limits = kept.limits;
  node.wait = kept.wait;
  node.waits_since = kept.waits_since;
  node.wait_reason = kept.wait_reason;
  node.placed_limits = kept.placed_limits;
  const RoleShape& role = shape_.roles[kept.role];
  node.requested = role.requested;
  node.min = role.min;
  node.max = role.max;
  return node;
}

const MasterNode* JobSensor::SeenOf(const KeptNode& kept) const {
  if (!master_.has_value() || !kept.runs()) return nullptr;
  const auto seen = master_->nodes.find(kept.name);
  if (seen == master_->nodes.end()) return nullptr;
  if (seen->second.start != StartNumber(kept.starts)) return nullptr;
  const NodeState state = seen->second.says.state;
  const bool heard = state == NodeState::kRunning || state == NodeState::kLost;
  return heard ? &seen->second : nullptr;
}

void JobSensor::HearTotals(const KeptNode& kept, const MasterNode& seen, NodeView* node) {
  NodeLife& life = lives_.at(kept.name);
  const uint64_t records = life.worker().records;
  const NodeLife::Heard heard = life.Hear(seen, master_->master_incarnation, master_->asked_at);
  if (heard == NodeLife::Heard::kNewSession) node->samples.clear();
  if (heard == NodeLife::Heard::kFirst) {
    // The first totals include work from before. It was not done between two of these samples, so
    // all samples get the same totals.
    for (NodeSample& sample : node->samples) {
      sample.worker = life.worker();
      sample.server = life.server();
    }
  }
  if (heard == NodeLife::Heard::kMore) view_.records_trained += life.worker().records - records;
  trained_ |= life.worker().records > 0;
}

void JobSensor::AddSample(const KeptNode& kept, const MasterNode* seen, NodeView* node) {
  const auto found = round_->readings.find(kept.name);
  const bool measured = found != round_->readings.end() && found->second.start == kept.starts;
  std::optional<NodeReading> reading;
  if (measured) {
    reading = found->second;
  } else if (seen != nullptr && seen->usage.has_value()) {
    reading = NodeReading{.node = kept.name, .start = kept.starts, .usage = *seen->usage};
  }
  NodeLife& life = lives_.at(kept.name);
  // If nothing is known yet, there are no figures to repeat.
  if (!reading.has_value() && node->samples.empty() && !life.heard()) return;
  // There is a sample for this second already.
  if (!node->samples.empty() && node->samples.back().at >= round_->at) return;
  node->samples.push_back(life.Sample(reading.has_value() ? &*reading : nullptr, round_->at));
  // Samples are removed many at a time, because removing one from the front moves all others.
  constexpr size_t kSlack = 60;
  if (node->samples.size() < options_.samples_max + kSlack) return;
  node->samples.erase(node->samples.begin(), node->samples.begin() + kSlack);
}

Activity JobSensor::ActivityNow(TimePoint now) const {
  if (!master_.has_value()) return Activity::kStarting;
  if (IsTerminal(master_->state)) return Activity::kOver;
  if (master_->state == JobState::kDraining) return Activity::kDraining;
  if (!view_.master_heard) return Activity::kStarting;
  bool servers_serve = true;
  bool workers = false;
  for (const NodeView& node : view_.nodes) {
    const bool serves = node.state == NodeState::kRunning || node.state == NodeState::kDraining;
    if (node.role == NodeRole::kServer) servers_serve &= serves;
    if (node.role == NodeRole::kWorker) workers |= serves;
  }
  if (!servers_serve) return trained_ ? Activity::kReplaying : Activity::kStarting;
  if (replaying_since_.has_value() && now - *replaying_since_ <= options_.replay_max) {
    return Activity::kReplaying;
  }
  if (!workers || !trained_) return Activity::kStarting;
  if (master_->evaluating) return Activity::kEvaluating;
  // All records are done and wait for snapshots, so the master will grant no more shards.
  const bool all_done = !master_->open && master_->records_expected > 0 &&
                        master_->records_done >= master_->records_expected;
  return all_done ? Activity::kDraining : Activity::kTraining;
}

void JobSensor::AddFigures() {
  std::vector<Figure> figures;
  rates_.clear();
  for (const NodeView& node : view_.nodes) {
    if (node.samples.empty() || node.samples.back().at != round_->at) continue;
    for (Figure& figure : FiguresOf(node, options_.figure_window)) {
      if (node.role == NodeRole::kWorker && std::string_view(figure.name) == "records_per_second") {
        rates_[node.name] = figure.value;
      }
      figures.push_back(std::move(figure));
    }
  }
  figures.push_back({"", "records_per_second", "records/s",
                     rates_.empty() ? std::numeric_limits<double>::quiet_NaN() : Rate()});
  rings_.Add(static_cast<uint64_t>(round_->wall.count()), figures);
}

std::optional<rest::Usage> JobSensor::UsageOf(const std::string& name) const {
  const NodeView* node = FindNode(view_, name);
  if (node == nullptr || node->samples.empty() || node->state == NodeState::kExited) {
    return std::nullopt;
  }
  const NodeUsage* const read = lives_.at(name).usage();
  if (read == nullptr) return std::nullopt;
  const std::optional<Span> span = NewestSpan(*node, options_.figure_window);
  rest::Usage usage{*read};
  usage.cpus = span.has_value() ? span->cpus() : 0;
  usage.throttled_ratio = span.has_value() ? span->throttled() : 0;
  return usage;
}

double JobSensor::RateOf(const std::string& worker) const {
  const auto rate = rates_.find(worker);
  return rate == rates_.end() ? 0 : rate->second;
}

double JobSensor::Rate() const {
  double sum = 0;
  for (const auto& [worker, rate] : rates_) sum += rate;
  return sum;
}

double JobSensor::SteadyRate() const {
  double rate = 0;
  for (const NodeView& node : view_.nodes) {
    const bool runs = node.state == NodeState::kRunning || node.state == NodeState::kDraining;
    if (node.role == NodeRole::kWorker && runs) rate += RecordsPerSecond(node);
  }
  return rate;
}

}  // namespace muster::scaler
