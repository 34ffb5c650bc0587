#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/manifests/manifests_command.h"
#include "kubernetes/manifests/objects.h"

/// What `muster manifests` prints. Pure, thread-safe functions.
namespace muster {

/// The line of a shell that makes the job's Secrets, for the same namespace as `options`.
std::string SecretsLine(const ManifestsOptions& options, const std::string& ns);

/// All objects but the Secrets, ready for `kubectl apply -f -`; as YAML, after comments that say
/// how to apply them and where the Secrets are. JSON is a List.
std::string ManifestsText(const ManifestsOptions& options, const kubernetes::ManifestJob& job);

/// The Secrets, in the same two forms.
std::string SecretsText(const ManifestsOptions& options,
                        const std::vector<nlohmann::json>& secrets);

}  // namespace muster
