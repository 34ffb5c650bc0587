#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "kubernetes/config/cluster_access.h"

/// Programs that print credentials, as clouds give them to their users. Thread-safe functions.
namespace muster::kubernetes {

/// What a request is sent with. Texts may be empty: then that part is missing.
struct Credentials {
  std::string token;
  /// PEM.
  std::string client_certificate;
  std::string client_key;
  /// From then on they are not valid; nothing: they do not say.
  std::optional<WallTime> expires;
};

/// Reads the ExecCredential that a plugin printed. Pure. kInvalidArgument: it is none, its version
/// is not `api_version`, or it has neither a token nor a certificate with a key.
absl::StatusOr<Credentials> ParseExecCredential(std::string_view text,
                                                std::string_view api_version);

/// Runs the plugin of `access`, which must have one, and reads what it prints. Blocks for at most
/// `deadline`; then the plugin and its children are killed. Errors name the command, how it ended,
/// and what it wrote to stderr.
absl::StatusOr<Credentials> RunExecPlugin(const ClusterAccess& access,
                                          std::chrono::milliseconds deadline);

}  // namespace muster::kubernetes
