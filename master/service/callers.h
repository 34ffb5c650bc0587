#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/status/status.h"
#include "proto/messages/node_role.h"
#include "security/identity.h"

namespace muster {

/// The master's gRPC services.
enum class MasterService : uint8_t { kWorkers, kServers, kAdmin };

/// Whether a certificate of this role may call the service. A caller of kAdmin also needs the job's
/// token.
bool MayCall(Role role, MasterService service);

/// Who may make a call of AdminService.
struct AdminCall {
  /// Also a machine that only joins.
  bool joiners = false;
  /// Then only one that joins as this role; none: any.
  std::optional<NodeRole> role = std::nullopt;
};
/// PermissionDenied unless a machine that only joins as `joins` may make the call.
absl::Status CheckJoiner(NodeRole joins, const AdminCall& call);

/// PermissionDenied, with the caller and what it may not do, unless the certificate's owner is of
/// the job and may call the service.
absl::Status CheckRole(const Identity& caller, std::string_view job_id, MasterService service);

}  // namespace muster
