#pragma once

#include <string>

namespace muster {

/// The job of a verb, if it runs on a cluster. Each field except `on` may be empty.
struct ClusterTarget {
  /// "kubernetes". If empty, the job runs on this machine.
  std::string on;
  /// The job's name. If empty, the job file names it.
  std::string job;
  /// A context of the kubeconfig. If empty, the current one.
  std::string context;
  /// If empty, the namespace of the job file, or else that of the context.
  std::string ns;
  /// If empty, $KUBECONFIG, or else ~/.kube/config.
  std::string kubeconfig;

  bool is_set() const { return !on.empty(); }
};

}  // namespace muster
