#include <nlohmann/json.hpp>
#include <string>

#include "base/check.h"
#include "base/status.h"
#include "kubernetes/config/exec_plugin.h"
#include "kubernetes/config/kubeconfig.h"
#include "kubernetes/model/api_error.h"
#include "kubernetes/model/json_access.h"
#include "kubernetes/model/json_lines.h"
#include "kubernetes/model/pod_state.h"
#include "kubernetes/model/resource.h"
#include "kubernetes/model/timestamp.h"
#include "kubernetes/model/watch_cache.h"
#include "tests/fuzz/targets.h"

namespace muster::testing {
namespace {

using namespace muster::kubernetes;

void ReadKubeconfig(std::string_view text) {
  const absl::StatusOr<ClusterAccess> access = ParseKubeconfig(text, "/home", "");
  if (!access.ok()) return;
  MUSTER_CHECK(CheckLabel(access->ns).ok());
  const absl::StatusOr<ClusterAccess> again = ParseServerUrl(access->Url());
  MUSTER_CHECK(again.ok() && again->Url() == access->Url());
}

void FollowWatch(std::string_view bytes) {
  WatchCache cache;
  JsonLines lines(1'000);
  const size_t half = bytes.size() / 2;
  const auto take = [&](const nlohmann::json& event) { return cache.Received(event).status(); };
  if (lines.Append(bytes.substr(0, half), take).ok()) {
    lines.Append(bytes.substr(half), take).IgnoreError();
  }
  for (const auto& [name, object] : cache.objects()) {
    MUSTER_CHECK(!name.empty() && IdentityOf(*object).name == name);
    MUSTER_CHECK(!Describe(ReadPodState(*object)).empty());
  }
}

void ReadError(std::string_view body) {
  const ApiError error = ReadApiError(403, body, body.substr(0, 8));
  MUSTER_CHECK(Explain(error).size() < 8'000);
  MUSTER_CHECK(KindOf(ToStatus(error)) == error.kind);
  MUSTER_CHECK(RetryAfterOf(ToStatus(error)) == error.retry_after);
}

}  // namespace

void FuzzKubernetesAnswers(std::string_view input) {
  if (input.empty()) return;
  const std::string_view rest = input.substr(1);
  switch (input.front()) {
    case 'k':
      return ReadKubeconfig(rest);
    case 'w':
      return FollowWatch(rest);
    case 'e':
      return ReadError(rest);
    case 'x':
      ParseExecCredential(rest, "client.authentication.k8s.io/v1").status().IgnoreError();
      return;
    case 't':
      ParseTimestamp(rest);
      return;
    case 'p':
      if (const auto pod = ParseJson(rest); pod.ok()) {
        MUSTER_CHECK(!Describe(ReadPodState(*pod)).empty());
        MUSTER_CHECK(ParseJson(ToText(*pod)).ok());
      }
      return;
    default:
      return;
  }
}

}  // namespace muster::testing
