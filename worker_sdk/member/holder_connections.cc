#include "worker_sdk/member/holder_connections.h"

namespace muster::internal {

collectives::StateClient* HolderConnections::To(const GroupMember& member,
                                                collectives::Listener* listener) {
  for (const auto& [kept, client] : clients_) {
    if (kept == member) return client.get();
  }
  clients_.emplace_back(member,
                        collectives::StateClient::Start({.holder = member, .listener = listener}));
  return clients_.back().second.get();
}

void HolderConnections::Close(const GroupMember& member) {
  std::erase_if(clients_, [&](const auto& client) { return client.first == member; });
}

}  // namespace muster::internal
