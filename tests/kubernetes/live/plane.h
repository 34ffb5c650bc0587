#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "kubernetes/client/client.h"
#include "kubernetes/client/watcher.h"
#include "kubernetes/config/credentials.h"

namespace muster::testing {

/// How long a test waits for what the cluster should do; much longer than it takes.
inline constexpr std::chrono::seconds kClusterPatience{90};

/// The output of control_plane.py with these words; a failure if it fails.
std::string AskPlane(const std::string& words);
/// Of kubectl, as an administrator.
std::string Kubectl(const std::string& words);

/// How an administrator reaches the control plane.
kubernetes::ClusterAccess AdminAccess();

/// A pod with one container, "main", that runs `script` in a shell.
nlohmann::json PodRunning(const std::string& name, const std::string& script);

/// With MUSTER_RECORD_PODS=FOLDER, writes the pod there: so tests/kubernetes/model/pods was made.
void RecordPod(nlohmann::json pod, const std::string& name);

/// A namespace of its own, and an administrator's client.
class LiveTest : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  kubernetes::ObjectPlace Pod(const std::string& name) const {
    return {.resource = kubernetes::Resource::kPods, .ns = ns_, .name = name};
  }
  /// Makes the pod, which must work; returns it.
  nlohmann::json Create(const nlohmann::json& pod);
  /// Asks for the pod until `is_there` says so; returns it. A failure if it takes too long.
  nlohmann::json WaitForPod(const std::string& name,
                            const std::function<bool(const nlohmann::json&)>& is_there);
  nlohmann::json WaitForPhase(const std::string& name, const std::string& phase);
  /// The process of a pod's container.
  int ProcessOf(const std::string& pod) const;

  std::string ns_;
  SystemClock clock_;
  std::unique_ptr<kubernetes::CredentialSource> credentials_;
  std::unique_ptr<kubernetes::Client> client_;
};

/// A client with other credentials than the administrator's.
struct OtherClient {
  OtherClient(kubernetes::ClusterAccess access, const Clock* clock)
      : credentials(std::move(access), clock), client(&credentials, clock) {}
  kubernetes::CredentialSource credentials;
  kubernetes::Client client;
};

}  // namespace muster::testing
