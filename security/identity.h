#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

/// Who a process is, as its certificate says. Pure functions.
namespace muster {

enum class Role : uint8_t { kMaster, kServer, kScaler, kWorker, kOperator };
inline constexpr std::array kRoles{Role::kMaster, Role::kServer, Role::kScaler, Role::kWorker,
                                   Role::kOperator};

/// "master", "ps", "scaler", "worker", "operator": in certificates and in the names of files.
std::string_view RoleWord(Role role);
/// None for any other text.
std::optional<Role> ParseRole(std::string_view word);

struct Identity {
  std::string job_id;
  Role role = Role::kWorker;
  std::string name;
  friend bool operator==(const Identity&, const Identity&) = default;
};

/// InvalidArgument unless `job_id` and `name` are 1 to 63 characters of a-z, 0-9 and -, with no -
/// at an end: they are parts of a host name.
absl::Status CheckIdentity(const Identity& identity);

/// "muster://JOB-ID/ROLE/NAME", the URI in a certificate.
std::string IdentityUri(const Identity& identity);
/// The reverse. InvalidArgument quotes at most 200 bytes of anything else.
absl::StatusOr<Identity> ParseIdentityUri(std::string_view uri);

/// "ROLE.JOB-ID.muster.internal", the host name in a certificate. A client that checks host names
/// as usual, and expects this name, checks the job and the role of the server. No resolver knows
/// the name.
std::string IdentityHost(std::string_view job_id, Role role);

struct JobRole {
  std::string job_id;
  Role role = Role::kWorker;
  friend bool operator==(const JobRole&, const JobRole&) = default;
};
/// The reverse. InvalidArgument as above.
absl::StatusOr<JobRole> ParseIdentityHost(std::string_view host);

}  // namespace muster
