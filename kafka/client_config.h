#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace muster::kafka {

/// How to reach a cluster. A value; it never holds a secret, only where each is to be found.
struct ClientConfig {
  /// host:port of some brokers.
  std::vector<std::string> brokers;
  /// Settings of librdkafka.
  std::map<std::string, std::string> properties;
  /// Further settings: "env:NAME" or "file:/path".
  std::map<std::string, std::string> secrets;
  friend bool operator==(const ClientConfig&, const ClientConfig&) = default;
};

/// The value of a secret, without the line ends at its end. kNotFound names variable or file;
/// kInvalidArgument: `place` is neither, or the value is longer than 64 KiB.
absl::StatusOr<std::string> ReadSecret(std::string_view place);

/// Checks, without connecting, that librdkafka accepts all settings and that every secret is found.
/// kInvalidArgument and kNotFound name the setting, never a secret's value.
absl::Status CheckConfig(const ClientConfig& config);

}  // namespace muster::kafka
