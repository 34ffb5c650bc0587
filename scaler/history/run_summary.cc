#include "scaler/history/run_summary.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "scaler/model/sample_span.h"

namespace muster::scaler {
namespace {

/// Data and programs may have changed since older runs.
constexpr size_t kRunsLearntFrom = 5;
constexpr double kCoresMax = 1'024;

bool Works(const NodeView& node) {
  return node.state == NodeState::kRunning || node.state == NodeState::kLost ||
         node.state == NodeState::kDraining;
}

}  // namespace

double RoleNeeds::CpusP95() const {
  uint64_t all = 0;
  for (const auto& [step, seconds] : cpu_seconds) all += seconds;
  uint64_t below = 0;
  for (const auto& [step, seconds] : cpu_seconds) {
    below += seconds;
    if (static_cast<double>(below) >= 0.95 * static_cast<double>(all)) return step * kCpuStep;
  }
  return 0;
}

void RunSummarizer::Step(const JobView& view, WallTime wall) {
  const auto wall_us = static_cast<uint64_t>(wall.count());
  if (summary_.began_wall_us == 0) summary_.began_wall_us = wall_us;
  summary_.ended_wall_us = wall_us;
  for (const NodeEnd& end : view.ends) {
    const bool for_memory =
        end.cause == EndCause::kKernelOutOfMemory || end.cause == EndCause::kOwnOutOfMemory;
    uint64_t& peak = summary_.roles[end.role].memory_peak_bytes;
    if (for_memory) peak = std::max(peak, end.memory_limit_bytes);
  }
  AddSamples(view);
  AddTime(view);
}

void RunSummarizer::AddSamples(const JobView& view) {
  for (const NodeView& node : view.nodes) {
    if (node.samples.empty() || !Works(node)) continue;
    const NodeSample& newest = node.samples.back();
    RoleNeeds& needs = summary_.roles[node.role];
    needs.memory_peak_bytes = std::max(needs.memory_peak_bytes, newest.memory_bytes);
    TimePoint& sampled = sampled_[node.name];
    if (newest.at <= sampled) continue;
    sampled = newest.at;
    if (view.activity != Activity::kTraining) continue;
    // Looks at one or two seconds only: means over a longer time hide short peaks from the
    // percentile.
    const std::optional<Span> span = SpanSince(node, newest.at - std::chrono::milliseconds(2'500),
                                               std::chrono::milliseconds(500));
    if (!span.has_value()) continue;
    const double cpus = std::clamp(span->cpus(), 0.0, kCoresMax);
    ++needs.cpu_seconds[static_cast<uint32_t>(std::ceil(cpus / RoleNeeds::kCpuStep))];
  }
}

void RunSummarizer::AddTime(const JobView& view) {
  const bool trains = view.activity == Activity::kTraining;
  if (trains && trained_at_.has_value()) {
    summary_.training_seconds += std::chrono::duration<double>(view.now - *trained_at_).count();
  }
  trained_at_ = trains ? std::optional(view.now) : std::nullopt;
}

std::map<NodeRole, RoleHistory> LearnFrom(const std::vector<RunSummary>& oldest_first) {
  std::map<NodeRole, RoleHistory> learnt;
  size_t runs = 0;
  for (auto run = oldest_first.rbegin(); run != oldest_first.rend(); ++run) {
    if (!run->counts()) continue;
    if (++runs > kRunsLearntFrom) break;
    for (const auto& [role, needs] : run->roles) {
      if (needs.memory_peak_bytes == 0) continue;
      RoleHistory& history = learnt[role];
      history.memory_peak_bytes = std::max(history.memory_peak_bytes, needs.memory_peak_bytes);
      history.cpus_p95 = std::max(history.cpus_p95, needs.CpusP95());
      ++history.runs;
    }
  }
  return learnt;
}

}  // namespace muster::scaler
