#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "collectives/listener.h"
#include "collectives/state_client.h"
#include "proto/messages/group_control.h"

namespace muster::internal {

/// Connections to the members from which a process gets the sums of steps that it lacks. They are
/// kept from one sum to the next: on a slow network, a new connection takes longer than a step of
/// the others, and the process would never catch up. Not thread-safe.
class HolderConnections {
 public:
  /// A connection to the member: the kept one, if there is one. Valid until Close or CloseAll.
  collectives::StateClient* To(const GroupMember& member, collectives::Listener* listener);
  /// Waits until no callback of this member's runs, and no memory is in use.
  void Close(const GroupMember& member);
  void CloseAll() { clients_.clear(); }

 private:
  std::vector<std::pair<GroupMember, std::unique_ptr<collectives::StateClient>>> clients_;
};

}  // namespace muster::internal
