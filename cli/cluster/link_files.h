#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/state/state_directory.h"

/// Verbs find a job by these files. They are made from the job's objects on Kubernetes.
namespace muster::cluster {

/// The value under `key` in a Secret of the API server. Errors: kFailedPrecondition names the key
/// if it is missing or no base64. Pure.
absl::StatusOr<std::string> SecretValue(const nlohmann::json& secret, const std::string& key);

struct LinkedJob {
  std::string job;
  /// The Job's UID.
  std::string run_id;
  /// The Secret NAME-muster.
  nlohmann::json secret;
  /// The text of the job file; may be empty.
  std::string job_file;
  /// Ports on 127.0.0.1.
  uint16_t master_port = 0;
  uint16_t rest_port = 0;
};

/// Makes `state`, whose folder must be private, look like the state directory of a job whose master
/// and scaler have these ports. It writes the endpoint, the REST address, the token, an operator's
/// certificate, and a copy of the job file.
absl::Status WriteLinkFiles(const LinkedJob& linked, const StateDirectory& state);

}  // namespace muster::cluster
