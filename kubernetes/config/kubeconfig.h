#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "kubernetes/config/cluster_access.h"

/// Finds the API server, from a kubeconfig or from inside a pod. Thread-safe functions.
namespace muster::kubernetes {

/// Parses the text of a kubeconfig: the context named `context`, or the present one if that is
/// empty. Paths in it are relative to `folder`. Reads no file.
///
/// kInvalidArgument, with the field, if the text is no YAML, a name or a part is missing, or it
/// needs something that Muster does not support: insecure-skip-tls-verify, plain HTTP, proxies,
/// passwords, auth-provider and impersonation. kNotFound if there is no such context.
absl::StatusOr<ClusterAccess> ParseKubeconfig(std::string_view text, const std::string& folder,
                                              std::string_view context);

/// Reads the file and parses it. Errors name the file.
absl::StatusOr<ClusterAccess> LoadKubeconfig(const std::string& path, std::string_view context);

/// Where Kubernetes puts the token, the certificate and the namespace of a pod's service account.
inline constexpr std::string_view kServiceAccountFolder =
    "/var/run/secrets/kubernetes.io/serviceaccount";

/// The access of a process in a pod. `host` and `port` are the values of KUBERNETES_SERVICE_HOST
/// and KUBERNETES_SERVICE_PORT, and `folder` is kServiceAccountFolder. kFailedPrecondition if this
/// is no pod, or if the pod has no service account's token.
absl::StatusOr<ClusterAccess> InClusterAccess(std::string_view host, std::string_view port,
                                              const std::string& folder);

}  // namespace muster::kubernetes
