#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "security/identity.h"

/// With the job's token one can give every order. A machine that only runs nodes of the job has a
/// token that is made from it, and does not give it away. Pure, thread-safe functions.
namespace muster {

/// The token of a machine that joins as this role: 64 hexadecimal digits, as base/token_file.h
/// reads them. `role`: kWorker or kServer.
std::string JoinToken(std::string_view job_token, Role role);

/// The role with which the caller who gave this token joins; none: it is no such token.
std::optional<Role> JoinRoleOf(std::string_view given, std::string_view job_token);

}  // namespace muster
