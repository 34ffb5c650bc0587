#include "scaler/policy/predicted_out_of_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "scaler/model/sample_span.h"
#include "scaler/policy/out_of_memory.h"
#include "scaler/policy/room.h"

namespace muster::scaler {
namespace {

/// The limit that the kernel enforces, or the one that was decided.
uint64_t LimitOf(const NodeView& node) {
  const uint64_t enforced = node.samples.back().memory_limit_bytes;
  // A limit that was raised a moment ago is not in the last sample yet.
  return std::max(enforced, node.limits.memory_bytes);
}

double UsageNow(const NodeView& node) {
  std::vector<double> last;
  for (size_t i = node.samples.size(); i-- > 0 && last.size() < 3;) {
    last.push_back(static_cast<double>(node.samples[i].memory_bytes));
  }
  return Median(std::move(last));
}

}  // namespace

std::vector<Proposal> PredictedOutOfMemoryPolicy::Step(const JobView& view) {
  std::vector<Proposal> proposals;
  for (const NodeView& node : view.nodes) {
    Seen& seen = seen_[node.name];
    const bool runs = node.state == NodeState::kRunning || node.state == NodeState::kLost;
    if (!runs || node.samples.empty() || node.limits.memory_bytes == 0) {
      seen = {};
      continue;
    }
    const uint64_t limit = LimitOf(node);
    const std::optional<Growth> growth = FindGrowth(view, node, limit);
    if (!growth.has_value()) {
      seen.in_a_row = 0;
    } else if (seen.newest != node.samples.back().at) {
      ++seen.in_a_row;
    }
    seen.newest = node.samples.back().at;
    if (seen.in_a_row < options_.confirmations) continue;
    std::optional<Proposal> proposal = Raise(view, node, limit, *growth);
    if (proposal.has_value()) proposals.push_back(*std::move(proposal));
  }
  return proposals;
}

std::optional<PredictedOutOfMemoryPolicy::Growth> PredictedOutOfMemoryPolicy::FindGrowth(
    const JobView& view, const NodeView& node, uint64_t limit) const {
  const double ceiling = static_cast<double>(limit);
  Growth growth{.usage = UsageNow(node)};
  if (growth.usage < options_.usage_min * ceiling) return std::nullopt;
  const TimePoint from = std::max(view.now - options_.window, node.started_at + options_.settle);
  std::vector<Point> points;
  double highest_before = 0;
  for (const NodeSample& sample : node.samples) {
    const double bytes = static_cast<double>(sample.memory_bytes);
    if (sample.at >= from) {
      points.push_back({std::chrono::duration<double>(sample.at - view.now).count(), bytes});
    } else if (sample.at >= node.started_at + options_.settle) {
      highest_before = std::max(highest_before, bytes);
    }
  }
  if (points.size() < options_.points_min) return std::nullopt;
  const double span = points.back().x - points.front().x;
  if (span < std::chrono::duration<double>(options_.span_min).count()) return std::nullopt;
  if (growth.usage < options_.new_high * highest_before) return std::nullopt;
  growth.window = std::chrono::seconds(static_cast<int64_t>(span + 0.5));
  growth.line = FitTheilSen(points);
  growth.growth = growth.line.slope * span;
  if (growth.line.concordance < options_.concordance_min ||
      growth.growth < options_.growth_to_noise_min * growth.line.noise ||
      growth.growth < options_.growth_of_limit_min * ceiling) {
    return std::nullopt;
  }
  growth.to_limit_s = std::max(ceiling - growth.usage, 0.0) / growth.line.slope;
  if (growth.to_limit_s > std::chrono::duration<double>(options_.horizon).count()) {
    return std::nullopt;
  }
  const size_t half = points.size() / 2;
  const RobustLine earlier = FitTheilSen(std::span(points).first(half));
  const RobustLine later = FitTheilSen(std::span(points).subspan(half));
  // If each half window grows less than the one before, all later growth is a geometric series.
  const double decay = earlier.slope > 0 ? later.slope / earlier.slope : 1;
  const double to_come = decay <= 0 ? 0 : later.slope * span / 2 * decay / (1 - decay);
  if (decay < 1 && growth.usage + to_come < ceiling) return std::nullopt;
  return growth;
}

std::optional<Proposal> PredictedOutOfMemoryPolicy::Raise(const JobView& view, const NodeView& node,
                                                          uint64_t limit,
                                                          const Growth& growth) const {
  const double horizon_s = std::chrono::duration<double>(options_.horizon).count();
  const double ceiling = static_cast<double>(limit);
  const double needed = growth.usage + 2 * horizon_s * growth.line.slope;
  Resources after = node.limits;
  after.memory_bytes = RoundUpToMiB(std::max(options_.factor * ceiling, needed));
  const Room room = RoomOf(view, node);
  if (room.memory_bound != Bound::kNone) {
    after.memory_bytes = std::min(after.memory_bytes, room.most.memory_bytes);
  }
  if (static_cast<double>(after.memory_bytes) < options_.gain_min * ceiling) return std::nullopt;
  Proposal proposal{
      .policy = name(),
      .action = Action::kResize,
      .target = node.name,
      .before = node.limits,
      .after = after,
      .evidence = {{"memory", growth.usage, "bytes"},
                   {"memory limit", ceiling, "bytes"},
                   {"memory growth", growth.line.slope, "bytes/s", growth.window},
                   {"noise around the line", growth.line.noise, "bytes", growth.window},
                   {"share of rising pairs less falling ones", growth.line.concordance, "ratio",
                    growth.window},
                   {"time to the limit", growth.to_limit_s, "s"}},
      .because = fmt::format(
          "{} uses {} of its {} and grows by {}/s: it would be killed in {:.0f} s, so its limit "
          "becomes {}",
          node.name, BytesText(static_cast<uint64_t>(growth.usage)), BytesText(limit),
          BytesText(static_cast<uint64_t>(growth.line.slope)), growth.to_limit_s,
          BytesText(after.memory_bytes))};
  AddPressure("memory pressure", node.samples.back().memory_pressure_percent, &proposal);
  return proposal;
}

}  // namespace muster::scaler
