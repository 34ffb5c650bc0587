#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/manifests/manifests_command.h"
#include "kubernetes/manifests/objects.h"

/// The texts of `muster manifests`. Pure, thread-safe functions.
namespace muster {

/// The shell command that makes the job's Secrets, in the same namespace as `options`.
std::string SecretsLine(const ManifestsOptions& options, const std::string& ns);

/// All objects except the Secrets, ready for `kubectl apply -f -`. YAML begins with comments that
/// say how to apply them and where the Secrets are. JSON is a List.
std::string ManifestsText(const ManifestsOptions& options, const kubernetes::ManifestJob& job);

/// The Secrets, as YAML or JSON.
std::string SecretsText(const ManifestsOptions& options,
                        const std::vector<nlohmann::json>& secrets);

}  // namespace muster
