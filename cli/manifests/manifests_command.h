#pragma once

#include <cstdint>
#include <string>

#include "kubernetes/manifests/objects.h"

namespace muster {

enum class ManifestsOutput : uint8_t { kYaml, kJson };

struct ManifestsOptions {
  std::string job_file;
  kubernetes::ManifestFlags flags;
  ManifestsOutput output = ManifestsOutput::kYaml;
  /// Prints only the Secrets.
  bool secrets = false;
  /// The folder into which a base for Kustomize is written. If empty, everything goes to stdout.
  std::string kustomize;
};

/// `muster manifests`: prints the objects of a job on Kubernetes, or writes them. It asks no
/// cluster. Returns the exit code.
int ManifestsCommand(const ManifestsOptions& options);

}  // namespace muster
