#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "security/identity.h"

/// Anyone with the job's token can give every order. So a machine that only runs nodes of the job
/// has another token. It is made from the job's token but does not reveal it. Pure, thread-safe
/// functions.
namespace muster {

/// The token of a machine that joins as this role (kWorker or kServer). It has 64 hexadecimal
/// digits, as base/token_file.h needs.
std::string JoinToken(std::string_view job_token, Role role);

/// The role as which the caller with this token joins. None if it is no such token.
std::optional<Role> JoinRoleOf(std::string_view given, std::string_view job_token);

}  // namespace muster
