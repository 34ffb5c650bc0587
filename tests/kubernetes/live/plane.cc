#include "tests/kubernetes/live/plane.h"

#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <cstdlib>

#include "base/file.h"
#include "kubernetes/config/kubeconfig.h"
#include "kubernetes/model/json_access.h"
#include "tests/support/status_matchers.h"

namespace muster::testing {
namespace {

std::string FromEnvironment(const char* name) {
  const char* value = getenv(name);
  return value == nullptr ? "" : value;
}

/// Of a shell command that must succeed.
std::string Output(const std::string& command) {
  std::FILE* pipe = ::popen((command + " </dev/null").c_str(), "r");
  EXPECT_NE(pipe, nullptr);
  std::string output;
  std::array<char, 4096> buffer;
  for (size_t count; (count = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) {
    output.append(buffer.data(), count);
  }
  EXPECT_EQ(::pclose(pipe), 0) << command;
  return output;
}

}  // namespace

std::string AskPlane(const std::string& words) {
  const size_t verb = std::min(words.find(' '), words.size());
  return Output(fmt::format("{} {} {} {}", FromEnvironment("MUSTER_PLANE_SCRIPT"),
                            words.substr(0, verb), FromEnvironment("MUSTER_PLANE"),
                            words.substr(verb)));
}

std::string Kubectl(const std::string& words) {
  return Output(fmt::format("{} kubectl --kubeconfig {}/admin.kubeconfig {}",
                            FromEnvironment("MUSTER_PLANE_PROGRAM"),
                            FromEnvironment("MUSTER_PLANE"), words));
}

kubernetes::ClusterAccess AdminAccess() {
  auto access =
      kubernetes::LoadKubeconfig(FromEnvironment("MUSTER_PLANE") + "/admin.kubeconfig", "");
  EXPECT_THAT(access, IsOk());
  return *access;
}

nlohmann::json PodRunning(const std::string& name, const std::string& script) {
  return {{"apiVersion", "v1"},
          {"kind", "Pod"},
          {"metadata", {{"name", name}, {"labels", {{"muster.io/test", "yes"}}}}},
          {"spec",
           {{"restartPolicy", "Never"},
            {"terminationGracePeriodSeconds", 1},
            {"containers",
             nlohmann::json::array(
                 {{{"name", "main"}, {"image", "test"}, {"command", {"sh", "-c", script}}}})}}}};
}

void RecordPod(nlohmann::json pod, const std::string& name) {
  const std::string folder = FromEnvironment("MUSTER_RECORD_PODS");
  if (folder.empty()) return;
  pod["metadata"].erase("managedFields");
  EXPECT_THAT(WriteFileAtomically(folder + "/" + name + ".json", pod.dump(1) + "\n"), IsOk());
}

void LiveTest::SetUp() {
  static int number = 0;
  ns_ = fmt::format("test-{}", ++number);
  credentials_ = std::make_unique<kubernetes::CredentialSource>(AdminAccess(), &clock_);
  client_ = std::make_unique<kubernetes::Client>(credentials_.get(), &clock_);
  Kubectl("create namespace " + ns_);
  // Pods cannot be made before the namespace has its service account.
  Kubectl("wait serviceaccount/default --for=create --timeout=90s -n " + ns_);
}

void LiveTest::TearDown() {
  Kubectl("delete namespace --wait=false " + ns_);
}

nlohmann::json LiveTest::Create(const nlohmann::json& pod) {
  auto made = client_->Create(kubernetes::Resource::kPods, ns_, pod);
  EXPECT_THAT(made, IsOk());
  return made.ok() ? *made : nlohmann::json();
}

nlohmann::json LiveTest::WaitForPod(const std::string& name,
                                    const std::function<bool(const nlohmann::json&)>& is_there) {
  const TimePoint end = clock_.Now() + kClusterPatience;
  while (true) {
    const auto pod = client_->Get(Pod(name));
    EXPECT_THAT(pod, IsOk());
    if (!pod.ok()) return nullptr;
    if (is_there(*pod)) return *pod;
    if (clock_.Now() > end) {
      ADD_FAILURE() << "waited in vain: " << pod->dump(1);
      return *pod;
    }
    SleepFor(std::chrono::milliseconds(50));  // the cluster has no event for "asked again"
  }
}

nlohmann::json LiveTest::WaitForPhase(const std::string& name, const std::string& phase) {
  return WaitForPod(name, [&](const nlohmann::json& pod) {
    return kubernetes::TextAt(pod, {"status", "phase"}) == phase;
  });
}

int LiveTest::ProcessOf(const std::string& pod) const {
  const std::string pods = AskPlane("fault /pods");
  const std::string begin = fmt::format("{}/{} ", ns_, pod);
  const size_t at = pods.find(begin);
  if (at == std::string::npos) return 0;
  const size_t end = pods.find('\n', at);
  return std::atoi(pods.substr(pods.rfind(' ', end) + 1, end).c_str());
}

}  // namespace muster::testing
