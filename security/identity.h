#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

/// The identity of a process in its certificate. Pure functions.
namespace muster {

enum class Role : uint8_t { kMaster, kServer, kScaler, kWorker, kOperator };
inline constexpr std::array kRoles{Role::kMaster, Role::kServer, Role::kScaler, Role::kWorker,
                                   Role::kOperator};

/// "master", "ps", "scaler", "worker", "operator". Certificates and names of files contain these
/// words.
std::string_view RoleWord(Role role);
/// None for any other text.
std::optional<Role> ParseRole(std::string_view word);

struct Identity {
  std::string job_id;
  Role role = Role::kWorker;
  std::string name;
  friend bool operator==(const Identity&, const Identity&) = default;
};

/// InvalidArgument unless `job_id` and `name` have 1 to 63 characters of a-z, 0-9 and -, with no -
/// at either end, because they are parts of a host name.
absl::Status CheckIdentity(const Identity& identity);

/// "muster://JOB-ID/ROLE/NAME", the URI in a certificate.
std::string IdentityUri(const Identity& identity);
/// The reverse. InvalidArgument for any other text; it quotes at most 200 bytes of it.
absl::StatusOr<Identity> ParseIdentityUri(std::string_view uri);

/// "ROLE.JOB-ID.muster.internal", the host name in a certificate. If a client expects this name and
/// checks host names as usual, it checks the job and the role of the server. No name service knows
/// the name.
std::string IdentityHost(std::string_view job_id, Role role);

struct JobRole {
  std::string job_id;
  Role role = Role::kWorker;
  friend bool operator==(const JobRole&, const JobRole&) = default;
};
/// The reverse. InvalidArgument for any other text, as above.
absl::StatusOr<JobRole> ParseIdentityHost(std::string_view host);

}  // namespace muster
