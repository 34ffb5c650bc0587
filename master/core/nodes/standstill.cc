#include "master/core/nodes/standstill.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/text.h"

namespace muster {
namespace {

/// The last sign of life of the node's process; none if it does not run, as far as is known, or
/// does not call the master.
std::optional<TimePoint> LastSign(const Node& node) {
  const bool runs = node.record.state == NodeState::kStarting ||
                    node.record.state == NodeState::kRunning ||
                    node.record.state == NodeState::kLost;
  if (!runs || node.drain.state == DrainState::kDrained || HoldOf(node) != nullptr) return {};
  if (!node.told_at.has_value()) return {};
  return std::max(*node.told_at, node.last_heard.value_or(*node.told_at));
}

struct Silence {
  const Node* longest = nullptr;
  TimePoint since;
  size_t count = 0;
};

Silence SilenceOf(const std::map<std::string, Node>& nodes, NodeRole role, TimePoint until) {
  Silence silence;
  for (const auto& [name, node] : nodes) {
    const std::optional<TimePoint> sign = node.record.Is(role) ? LastSign(node) : std::nullopt;
    if (!sign.has_value() || *sign > until) continue;
    ++silence.count;
    if (silence.longest != nullptr && silence.since <= *sign) continue;
    silence.longest = &node;
    silence.since = *sign;
  }
  return silence;
}

std::string TextOf(const Silence& silence, const char* what, TimePoint now) {
  const NodeRecord& record = silence.longest->record;
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now - silence.since);
  // A process that has called before could reach the master then.
  const bool called = record.state != NodeState::kStarting;
  const std::string others =
      silence.count == 1 ? "" : fmt::format(" (like {})", CountText(silence.count - 1, what));
  return fmt::format(
      "{}{}{} runs, but has not called for {} s{}: {}. `muster logs` shows what it says",
      record.name, record.host.empty() ? "" : " on ", record.host, seconds.count(), others,
      called ? "it is stopped, hangs, or cannot reach the master any more"
             : "it cannot reach the master, is stopped, hangs, or still loads");
}

}  // namespace

void Standstill::See(DoneSeq done, TimePoint now) {
  if (done == done_) return;
  done_ = done;
  progress_at_ = now;
}

std::string Standstill::Text(const std::map<std::string, Node>& nodes, TimePoint now) const {
  const Silence servers = SilenceOf(nodes, NodeRole::kServer, now - kServerSilence);
  if (servers.longest != nullptr) return TextOf(servers, "other server", now);
  if (now - progress_at_ < kWorkerSilence) return {};
  const Silence workers = SilenceOf(nodes, NodeRole::kWorker, now - kWorkerSilence);
  return workers.longest == nullptr ? "" : TextOf(workers, "other worker", now);
}

}  // namespace muster
