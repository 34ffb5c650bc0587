#include "master/core/nodes/node_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

namespace muster {

namespace {

StartNumber NewestStart(const NodeRecord& record) {
  return std::max(record.start, record.told_start);
}

}  // namespace

bool IsReplaced(const NodeRecord& record, StartNumber start) {
  return start != StartNumber() && start < NewestStart(record);
}

absl::Status CheckNotReplaced(const NodeRecord& record, StartNumber start) {
  if (!IsReplaced(record, start)) return absl::OkStatus();
  return absl::FailedPreconditionError(fmt::format(
      "{}: the master knows start {} of this node already; this is start {}, which must "
      "exit",
      record.name, NewestStart(record).value(), start.value()));
}

const NodeHold* HoldOf(const Node& node) {
  const bool held = node.hold.wait != NodeWait::kNone && node.hold.start > NewestStart(node.record);
  return held ? &node.hold : nullptr;
}

uint32_t RestartsOf(const NodeRecord& record) {
  return static_cast<uint32_t>(std::max<uint64_t>(record.told_start.value(), 1) - 1);
}

NodeTable::NodeTable(std::map<std::string, NodeRecord> nodes, size_t nodes_max)
    : nodes_max_(nodes_max) {
  for (auto& [name, record] : nodes) nodes_[name].record = std::move(record);
}

Node* NodeTable::Find(const std::string& name) {
  auto it = nodes_.find(name);
  return it == nodes_.end() ? nullptr : &it->second;
}

Node* NodeTable::FindServer(ServerId id) {
  if (id.value() < servers_.size() && servers_[id.value()] != nullptr) return servers_[id.value()];
  Node* const node = Find(ServerName(id));
  if (node == nullptr) return nullptr;
  if (servers_.size() <= id.value()) servers_.resize(id.value() + 1);
  return servers_[id.value()] = node;
}

bool NodeTable::ForgetOne(const LeaseTable& leases) {
  auto oldest = nodes_.end();
  for (auto it = nodes_.begin(); it != nodes_.end(); ++it) {
    const auto& [name, node] = *it;
    const bool ended =
        node.record.state == NodeState::kExited || node.record.state == NodeState::kLost;
    if (!ended || !node.record.Is(NodeRole::kWorker) || leases.Holds(name)) continue;
    // A node that was not heard since the master began counts as ended before all others.
    if (oldest == nodes_.end() || node.last_heard < oldest->second.last_heard) oldest = it;
  }
  if (oldest == nodes_.end()) return false;
  dirty_.insert(oldest->first);
  servers_.clear();  // a worker may have a server's name
  nodes_.erase(oldest);
  return true;
}

Node* NodeTable::FindOrAdd(const std::string& name, NodeRole role, const LeaseTable& leases) {
  if (Node* node = Find(name)) return node;
  if (nodes_.size() >= nodes_max_ && !ForgetOne(leases)) return nullptr;
  Node& node = nodes_[name];
  node.record.name = name;
  node.record.role = ToString(role);
  Touch(node);
  return &node;
}

std::string NodeTable::ServerName(ServerId id) {
  return "ps-" + ToString(id);
}

std::optional<ServerId> NodeTable::ServerIdOf(const std::string& name) {
  if (!name.starts_with("ps-")) return std::nullopt;
  uint32_t number = 0;
  const char* begin = name.data() + 3;
  const char* end = name.data() + name.size();
  const auto [rest, error] = std::from_chars(begin, end, number);
  if (error != std::errc() || rest != end) return std::nullopt;
  const ServerId id(number);
  if (ServerName(id) != name) return std::nullopt;  // "ps-07"
  return id;
}

void NodeTable::KeepStart(Node* node, StartNumber start) {
  if (start <= node->record.start) return;
  node->record.start = start;
  Touch(*node);
}

NodeState NodeTable::Learn(Node* node, NodeNews news) {
  NodeRecord& record = node->record;
  const bool speaks = !record.Is(NodeRole::kMaster) && !record.Is(NodeRole::kScaler);
  const NodeState after =
      StateAfter(record.state, news, speaks ? NodeSpeaks::kYes : NodeSpeaks::kNo);
  if (after != record.state) Touch(*node);
  if (after == NodeState::kExited) node->outputs = {};
  return std::exchange(record.state, after);
}

void NodeTable::Forgive(std::chrono::nanoseconds gap, TimePoint now) {
  for (auto& [name, node] : nodes_) {
    if (node.last_heard.has_value()) node.last_heard = std::min(*node.last_heard + gap, now);
    if (node.told_at.has_value()) node.told_at = std::min(*node.told_at + gap, now);
    node.drain.began = std::min(node.drain.began + gap, now);
  }
}

void NodeTable::BeginRun() {
  for (auto& [name, node] : nodes_) {
    NodeRecord& record = node.record;
    node.hold = {};
    Learn(&node, NodeNews::kRunBegan);
    record.told_start = record.exit_told = StartNumber();
    record.pid = 0;
    record.incarnation = 0;
    record.start = StartNumber();
    record.last_exit.clear();
    record.host.clear();
    record.nonce = 0;
    record.superseded_nonces.clear();
    record.lanes.clear();
    record.skipped_before += std::exchange(record.skipped_now, 0);
    record.stale_before += std::exchange(record.stale_now, 0);
    Touch(node);
  }
}

std::vector<ServerEndpoint> NodeTable::Endpoints() const {
  std::vector<ServerEndpoint> endpoints;
  for (const auto& [name, node] : nodes_) {
    if (!node.record.Is(NodeRole::kServer) || node.record.incarnation == 0) continue;
    const std::optional<ServerId> id = ServerIdOf(name);
    if (!id.has_value()) continue;
    endpoints.push_back({*id, ServerIncarnation(node.record.incarnation), name, node.record.lanes});
  }
  std::ranges::sort(endpoints, {}, &ServerEndpoint::id);  // names are sorted differently
  return endpoints;
}

uint64_t NodeTable::PartsSkipped() const {
  uint64_t sum = 0;
  for (const auto& [name, node] : nodes_) {
    sum += node.record.skipped_before + node.record.skipped_now;
  }
  return sum;
}

uint64_t NodeTable::PartsStale() const {
  uint64_t sum = 0;
  for (const auto& [name, node] : nodes_) sum += node.record.stale_before + node.record.stale_now;
  return sum;
}

void NodeTable::Collect(std::vector<Mutation>* mutations) {
  for (const std::string& name : dirty_) {
    if (const Node* node = Find(name)) {
      mutations->push_back(node->record);
    } else {
      mutations->push_back(EraseNode{name});
    }
  }
  dirty_.clear();
}

}  // namespace muster
