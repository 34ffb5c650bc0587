#include "master/core/nodes/joining.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/status.h"

namespace muster {
namespace {

absl::StatusOr<std::string> NameOfServer(const std::string& wanted, const CoreOptions& options) {
  if (options.servers_joined == 0) {
    return absl::FailedPreconditionError(fmt::format(
        "the job runs all of its {} servers itself; set spec.replicaSpecs.ps.joined to the number "
        "of servers that join, and run the job again",
        options.servers));
  }
  const uint32_t first = options.servers - options.servers_joined;
  if (wanted.empty() && options.servers_joined == 1) return fmt::format("ps-{}", first);
  const std::optional<ServerId> id = NodeTable::ServerIdOf(wanted);
  if (id.has_value() && id->value() >= first && id->value() < options.servers) return wanted;
  return absl::InvalidArgumentError(
      fmt::format("a server that joins this job must be called ps-{} to ps-{} (--name), not '{}'",
                  first, options.servers - 1, wanted));
}

absl::StatusOr<std::string> NameOfWorker(const std::string& wanted) {
  // The scaler counts its own workers.
  constexpr std::string_view kPrefix = "worker-";
  const std::string_view rest =
      wanted.starts_with(kPrefix) ? std::string_view(wanted).substr(kPrefix.size()) : "";
  const bool counted =
      !rest.empty() && rest.find_first_not_of("0123456789") == std::string_view::npos;
  const bool server = NodeTable::ServerIdOf(wanted).has_value();
  if (!wanted.empty() && !counted && !server && wanted != "master" && wanted != "scaler") {
    return wanted;
  }
  return absl::InvalidArgumentError(
      fmt::format("a worker that joins needs a name of its own (--name), such as worker-gpu2, not "
                  "'{}'",
                  wanted));
}

/// From the answer until the node is told to run. A restart of the node may take as long.
constexpr std::chrono::seconds kBegins{10};

/// A joiner asks four times a second. One that is silent for so long is not waited for.
constexpr std::chrono::seconds kListens{10};

bool Lives(const NodeRecord& node) {
  return node.state == NodeState::kRunning || node.state == NodeState::kStarting;
}

}  // namespace

absl::StatusOr<Joining> Joiners::Join(const JoinWish& wish, const NodeTable& nodes,
                                      const CoreOptions& options, TimePoint now) {
  MUSTER_ASSIGN_OR_RETURN(Joining joining, JudgeJoin(wish, nodes, options));
  if (wish.joiner.empty()) return joining;
  // Names of the past are not kept.
  std::erase_if(holders_, [&](const auto& entry) {
    const auto& [name, holder] = entry;
    const auto found = nodes.nodes().find(name);
    if (found == nodes.nodes().end()) return now - holder.asked >= kBegins;
    const NodeRecord& node = found->second.record;
    // Who has begun and is lost asks no more; another machine may take its place at once.
    const bool lost = node.state == NodeState::kLost && node.start >= holder.start;
    return lost || (now - holder.asked >= kBegins && !Lives(node));
  });
  const auto [holder, added] =
      holders_.try_emplace(joining.name, Holder{wish.joiner, now, joining.first_start, now});
  if (!added && holder->second.joiner != wish.joiner) {
    return absl::FailedPreconditionError(
        fmt::format("another `muster join` has the name {} already, on this machine or on one with "
                    "the same host name; choose another name (--name)",
                    joining.name));
  }
  holder->second.asked = now;
  holder->second.heard = now;
  holder->second.start = joining.first_start;
  return joining;
}

void Joiners::IsTold(const std::string& joiner, bool over, TimePoint now) {
  if (joiner.empty()) return;
  for (auto& [name, holder] : holders_) {
    if (holder.joiner != joiner) continue;
    holder.heard = now;
    holder.knows_end |= over;
  }
}

std::vector<std::string> Joiners::EndUnheardBy(const NodeTable& nodes, TimePoint now) const {
  std::vector<std::string> names;
  for (const auto& [name, holder] : holders_) {
    const auto found = nodes.nodes().find(name);
    // It left before the end, and nobody keeps it any more.
    const bool left =
        found != nodes.nodes().end() && found->second.record.state == NodeState::kFinished;
    if (!holder.knows_end && !left && now - holder.heard < kListens) names.push_back(name);
  }
  return names;
}

absl::StatusOr<Joining> JudgeJoin(const JoinWish& wish, const NodeTable& nodes,
                                  const CoreOptions& options) {
  if (wish.role != NodeRole::kServer && wish.role != NodeRole::kWorker) {
    return absl::InvalidArgumentError(
        fmt::format("only a worker or a ps can join, not a {}", ToString(wish.role)));
  }
  MUSTER_ASSIGN_OR_RETURN(const std::string name, wish.role == NodeRole::kServer
                                                      ? NameOfServer(wish.name, options)
                                                      : NameOfWorker(wish.name));
  const auto found = nodes.nodes().find(name);
  if (found == nodes.nodes().end()) return Joining{name, StartNumber(1)};
  const NodeRecord& record = found->second.record;
  if (Lives(record) && !record.host.empty() && record.host != wish.host) {
    return absl::FailedPreconditionError(
        fmt::format("{} runs on {} already; choose another name", name, record.host));
  }
  return Joining{name, StartNumber(std::max(record.told_start, record.start).value() + 1)};
}

}  // namespace muster
