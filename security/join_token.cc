#include "security/join_token.h"

#include <fmt/format.h>

#include "base/digest/sha256.h"
#include "base/token_file.h"

namespace muster {

std::string JoinToken(std::string_view job_token, Role role) {
  return Sha256Hex(fmt::format("muster join as {}\n{}", RoleWord(role), job_token));
}

std::optional<Role> JoinRoleOf(std::string_view given, std::string_view job_token) {
  for (const Role role : {Role::kWorker, Role::kServer}) {
    if (SameSecret(given, JoinToken(job_token, role))) return role;
  }
  return std::nullopt;
}

}  // namespace muster
