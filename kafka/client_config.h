#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace muster::kafka {

/// How to reach a cluster. A value. It never holds secrets, only the places where they are.
struct ClientConfig {
  /// Some brokers, as host:port.
  std::vector<std::string> brokers;
  /// Settings for librdkafka.
  std::map<std::string, std::string> properties;
  /// Further settings, whose values are at "env:NAME" or "file:/path".
  std::map<std::string, std::string> secrets;
  friend bool operator==(const ClientConfig&, const ClientConfig&) = default;
};

/// Reads a secret, without line breaks at its end. kNotFound names the variable or the file.
/// kInvalidArgument if `place` is neither, or if the value is longer than 64 KiB.
absl::StatusOr<std::string> ReadSecret(std::string_view place);

/// Checks, without connecting, that librdkafka accepts all settings and that every secret exists.
/// kInvalidArgument and kNotFound name the setting, but never the value of a secret.
absl::Status CheckConfig(const ClientConfig& config);

}  // namespace muster::kafka
