#include "master/core/node_table.h"

#include <algorithm>

#include <charconv>
#include <utility>

namespace muster {

std::string_view ToString(NodeDrain::State state) {
  switch (state) {
    case NodeDrain::State::kNone:
      return "";
    case NodeDrain::State::kDraining:
      return "draining";
    case NodeDrain::State::kDrained:
      return "drained";
  }
  return "";
}

NodeTable::NodeTable(std::map<std::string, NodeRecord> nodes) {
  for (auto& [name, record] : nodes) nodes_[name].record = std::move(record);
}

Node* NodeTable::Find(const std::string& name) {
  auto it = nodes_.find(name);
  return it == nodes_.end() ? nullptr : &it->second;
}

Node* NodeTable::FindOrAdd(const std::string& name, std::string_view role) {
  if (Node* node = Find(name)) return node;
  if (nodes_.size() >= kNodesMax) return nullptr;
  Node& node = nodes_[name];
  node.record.name = name;
  node.record.role = std::string(role);
  node.record.state = "starting";
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

bool NodeTable::SetState(Node* node, std::string_view state) {
  if (node->record.state == state) return false;
  node->record.state = std::string(state);
  Touch(*node);
  return true;
}

void NodeTable::Forgive(std::chrono::nanoseconds gap, TimePoint now) {
  for (auto& [name, node] : nodes_) {
    if (node.last_heard.has_value()) node.last_heard = std::min(*node.last_heard + gap, now);
    node.drain.began = std::min(node.drain.began + gap, now);
  }
}

void NodeTable::BeginRun() {
  for (auto& [name, node] : nodes_) {
    NodeRecord& record = node.record;
    record.state = "exited";
    record.pid = 0;
    record.incarnation = 0;
    record.start = 0;
    record.restarts = 0;
    record.last_exit.clear();
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
    if (node.record.role != kRoleServer || node.record.incarnation == 0) continue;
    const std::optional<ServerId> id = ServerIdOf(name);
    if (!id.has_value()) continue;
    endpoints.push_back({*id, ServerIncarnation(node.record.incarnation), name, node.record.lanes});
  }
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
  for (const std::string& name : dirty_) mutations->push_back(nodes_.at(name).record);
  dirty_.clear();
}

}  // namespace muster
