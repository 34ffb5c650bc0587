#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "kubernetes/config/cluster_access.h"

/// Programs that print credentials. Clouds give them to their users. Thread-safe functions.
namespace muster::kubernetes {

/// The credentials of a request. An empty text means that this part is missing.
struct Credentials {
  std::string token;
  /// Both are PEM.
  std::string client_certificate;
  std::string client_key;
  /// From this time on they are invalid. None if they do not say.
  std::optional<WallTime> expires;
};

/// Parses the ExecCredential that a plugin printed. Pure. kInvalidArgument if the text is something
/// else, its version is not `api_version`, or it has neither a token nor a certificate with a key.
absl::StatusOr<Credentials> ParseExecCredential(std::string_view text,
                                                std::string_view api_version);

/// Runs the plugin of `access`, which must have one, and parses its output. Blocks for at most
/// `deadline`; after that, the plugin and its children are killed. Errors name the command, say how
/// it ended, and quote its stderr.
absl::StatusOr<Credentials> RunExecPlugin(const ClusterAccess& access,
                                          std::chrono::milliseconds deadline);

}  // namespace muster::kubernetes
