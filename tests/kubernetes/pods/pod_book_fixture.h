#pragma once

#include <gtest/gtest.h>

#include <string>
#include <variant>
#include <vector>

#include "kubernetes/pods/pod_book.h"
#include "tests/kubernetes/pods/model_cluster.h"
#include "tests/kubernetes/pods/scripted_book.h"

namespace muster::testing {

/// The pods of the first two starts of worker-0.
inline constexpr char kPod[] = "flights-worker-0-1";
inline constexpr char kNext[] = "flights-worker-0-2";

/// A book over a model of an API server.
class PodBookTest : public ::testing::Test {
 protected:
  void Start(uint32_t start = 1, Resources limits = {}) {
    book().Start({.node = "worker-0", .start = start, .limits = limits}, host_.now);
    host_.Settle();
  }
  void StartRunning(uint32_t start = 1) {
    Start(start);
    cluster_.Run(PodName(TestRun(), "worker-0", start));
    host_.Settle();
    host_.Reports();
  }
  kubernetes::PodBook& book() { return host_.book(); }
  std::vector<std::string> Told() { return Texts(host_.Reports()); }
  /// The last one told is of an exit: why the place was taken.
  NodeExited ExitOf(std::vector<HostReport> reports) {
    EXPECT_FALSE(reports.empty());
    if (reports.empty()) return {};
    const NodeExited* const exit = std::get_if<NodeExited>(&reports.back());
    EXPECT_NE(exit, nullptr);
    return exit == nullptr ? NodeExited{} : *exit;
  }
  bool IsThere(const std::string& name) { return cluster_.pods().contains(name); }

  ModelCluster cluster_;
  ScriptedBook host_{&cluster_};
};

}  // namespace muster::testing
