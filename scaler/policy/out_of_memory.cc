#include "scaler/policy/out_of_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "scaler/policy/no_room.h"
#include "scaler/policy/room.h"

namespace muster::scaler {
namespace {

/// A size for which there was no room is not tried again for this long.
constexpr std::chrono::hours kRefusedFor{1};

std::string Killer(EndCause cause) {
  return cause == EndCause::kKernelOutOfMemory ? "the kernel" : "the watch over its memory";
}

std::string HowToRaise(Bound bound, NodeRole role) {
  switch (bound) {
    case Bound::kBudget:
      return "raise spec.budget.memory";
    case Bound::kMachine:
      return "run on a machine with more memory";
    default:
      return fmt::format("raise spec.replicaSpecs.{}.resources.max.memory", ToString(role));
  }
}

/// True if the life that is over has done work of its own, so the next life will probably work,
/// too. Progress of the job does not prove that, because other nodes may have made it.
bool Worked(const NodeView& node, const NodeEnd& end) {
  if (!end.progressed || node.start != end.start || node.samples.empty()) return false;
  const NodeSample& last = node.samples.back();
  return last.worker.minibatches > 0 || last.server.parts > 0;
}

/// The proposal if the bounds of `room` allow no larger limit. `killed` says how the node ended.
Proposal AtBound(Proposal proposal, const NodeView& node, const NodeEnd& end, const Room& room,
                 const std::string& killed) {
  const std::string remedy =
      fmt::format("{}, or {}", HowToRaise(room.memory_bound, node.role),
                  node.role == NodeRole::kServer
                      ? "share the weights out over more servers (spec.replicaSpecs.ps.replicas)"
                      : "let the trainer use less");
  const std::string bound =
      fmt::format("{}, and {} is all that {} allows", killed, BytesText(room.most.memory_bytes),
                  ToString(room.memory_bound, node.role));
  if (Worked(node, end)) {
    proposal.after = node.limits;
    proposal.because = fmt::format(
        "{}. It had worked, and the job made progress meanwhile, so it starts again with the "
        "same limits. To avoid further kills, {}",
        bound, remedy);
    return proposal;
  }
  proposal.action = Action::kStopJob;
  proposal.target = "job";
  proposal.before = std::monostate{};
  proposal.because = fmt::format("{}: {}", bound, remedy);
  return proposal;
}

}  // namespace

uint64_t RoundUpToMiB(double bytes) {
  constexpr double kMiB = 1 << 20;
  return static_cast<uint64_t>(std::ceil(bytes / kMiB)) << 20;
}

std::vector<Proposal> OutOfMemoryPolicy::Step(const JobView& view) {
  NoteRefused(view);
  std::vector<Proposal> proposals;
  for (const NodeEnd& end : view.ends) {
    if (end.cause != EndCause::kKernelOutOfMemory && end.cause != EndCause::kOwnOutOfMemory) {
      continue;
    }
    const NodeView* node = FindNode(view, end.node);
    if (node == nullptr || end.memory_limit_bytes == 0) continue;
    // A kill may be reported twice, for example by a restarted scaler. It is answered once.
    uint32_t& handled = handled_[end.node];
    if (end.start <= handled) continue;
    handled = end.start;
    proposals.push_back(OnKill(view, *node, end));
  }
  return proposals;
}

void OutOfMemoryPolicy::NoteRefused(const JobView& view) {
  for (const ActionTaken& taken : view.taken) {
    const auto waited = waited_with_.find(taken.target);
    if (taken.policy != PlaceWatch::kPolicy || taken.action != Action::kRestart) continue;
    if (waited != waited_with_.end()) refused_[taken.target] = {waited->second, taken.at};
  }
  for (const NodeView& node : view.nodes) {
    if (WaitsForRoom(node)) waited_with_[node.name] = node.limits.memory_bytes;
  }
}

std::optional<uint64_t> OutOfMemoryPolicy::HalfwayTo(uint64_t wanted, uint64_t limit,
                                                     const JobView& view,
                                                     const NodeView& node) const {
  const auto found = refused_.find(node.name);
  if (found == refused_.end() || view.now - found->second.at >= kRefusedFor) return std::nullopt;
  const uint64_t refused = found->second.memory_bytes;
  if (wanted < refused || refused <= limit) return std::nullopt;
  const uint64_t halfway = (limit + (refused - limit) / 2) >> 20 << 20;
  const bool gains = static_cast<double>(halfway) >= options_.gain_min * static_cast<double>(limit);
  return gains ? std::optional(halfway) : std::nullopt;
}

Proposal OutOfMemoryPolicy::OnKill(const JobView& view, const NodeView& node,
                                   const NodeEnd& end) const {
  const uint64_t limit = end.memory_limit_bytes;
  const double base = static_cast<double>(std::max(limit, end.memory_peak_bytes));
  Proposal proposal{
      .policy = name(),
      .action = Action::kRestart,
      .kind = Proposal::Kind::kRepair,
      .target = node.name,
      .before = node.limits,
      .evidence = {{.name = "memory limit", .value = static_cast<double>(limit), .unit = "bytes"},
                   {.name = "memory peak",
                    .value = static_cast<double>(end.memory_peak_bytes),
                    .unit = "bytes"},
                   {.name = "start",
                    .value = static_cast<double>(end.start),
                    .unit = "of the node"}},
      .ended = node.name};
  const std::string killed =
      fmt::format("{} was killed by {} at its memory limit of {} (peak {})", node.name,
                  Killer(end.cause), BytesText(limit), BytesText(end.memory_peak_bytes));
  Resources after = node.limits;
  if (static_cast<double>(node.limits.memory_bytes) >=
      options_.raised_already * static_cast<double>(limit)) {
    proposal.after = after;
    proposal.because =
        fmt::format("{}; its limit is {} meanwhile", killed, BytesText(node.limits.memory_bytes));
    return proposal;
  }
  const Room room = RoomOf(view, node);
  after.memory_bytes = RoundUpToMiB(options_.factor * base);
  const bool bounded =
      room.memory_bound != Bound::kNone && after.memory_bytes > room.most.memory_bytes;
  if (bounded) {
    proposal.evidence.push_back({.name = "memory wanted",
                                 .value = static_cast<double>(after.memory_bytes),
                                 .unit = "bytes"});
    proposal.evidence.push_back({.name = "memory it may have",
                                 .value = static_cast<double>(room.most.memory_bytes),
                                 .unit = "bytes"});
    after.memory_bytes = room.most.memory_bytes;
  }
  const std::optional<uint64_t> halfway = HalfwayTo(after.memory_bytes, limit, view, node);
  if (halfway.has_value()) after.memory_bytes = *halfway;
  if (static_cast<double>(after.memory_bytes) < options_.gain_min * static_cast<double>(limit)) {
    return AtBound(std::move(proposal), node, end, room, killed);
  }
  proposal.after = after;
  proposal.because = fmt::format(
      "{}; it is started again with {}{}", killed, BytesText(after.memory_bytes),
      halfway   ? ", because there was no room for more"
      : bounded ? fmt::format(", all that {} allows", ToString(room.memory_bound, node.role))
                : "");
  return proposal;
}

}  // namespace muster::scaler
