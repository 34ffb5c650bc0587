#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "kubernetes/config/cluster_access.h"

/// Where the API server is, from a kubeconfig or from inside a pod. Thread-safe functions.
namespace muster::kubernetes {

/// Reads the text of a kubeconfig: the context named `context`, or the current one if that is
/// empty. Paths in it are relative to `folder`. Reads no file.
///
/// kInvalidArgument, with the field: it is no YAML, a name or a part is missing, or it asks for
/// what Muster does not do: insecure-skip-tls-verify, plain HTTP, proxies, passwords, auth-provider
/// and impersonation. kNotFound: there is no such context.
absl::StatusOr<ClusterAccess> ParseKubeconfig(std::string_view text, const std::string& folder,
                                              std::string_view context);

/// Reads the file and parses it. Errors name the file.
absl::StatusOr<ClusterAccess> LoadKubeconfig(const std::string& path, std::string_view context);

/// Where Kubernetes puts the token, the certificate and the namespace of a pod's service account.
inline constexpr std::string_view kServiceAccountFolder =
    "/var/run/secrets/kubernetes.io/serviceaccount";

/// For a process in a pod: `host` and `port` are the values of KUBERNETES_SERVICE_HOST and
/// KUBERNETES_SERVICE_PORT, and `folder` is kServiceAccountFolder. kFailedPrecondition: this is no
/// pod, or it has no service account's token.
absl::StatusOr<ClusterAccess> InClusterAccess(std::string_view host, std::string_view port,
                                              const std::string& folder);

}  // namespace muster::kubernetes
