#pragma once

#include <string>

namespace muster {

/// A verb's job that runs on a cluster; each field but `on` may be empty.
struct ClusterTarget {
  /// "kubernetes"; empty: the job runs on this machine.
  std::string on;
  /// The job's name; empty: the job file's.
  std::string job;
  /// Of the kubeconfig; empty: the current one.
  std::string context;
  /// Empty: the job file's, else the context's.
  std::string ns;
  /// Empty: $KUBECONFIG, else ~/.kube/config.
  std::string kubeconfig;

  bool is_set() const { return !on.empty(); }
};

}  // namespace muster
