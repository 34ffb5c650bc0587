#include "kubernetes/client/client.h"

#include <gtest/gtest.h>

#include <cstdio>

#include "base/file.h"
#include "kubernetes/model/api_error.h"
#include "kubernetes/model/json_access.h"
#include "kubernetes/model/pod_state.h"
#include "tests/kubernetes/live/plane.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster::kubernetes {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;
using testing::PodRunning;

/// What its first container has, which may not be what its spec asks for.
std::string CpuOf(const nlohmann::json& pod) {
  return TextAt(ContainerStatusOf(pod, ""), {"resources", "requests", "cpu"});
}

class ClientLiveTest : public testing::LiveTest {};

TEST_F(ClientLiveTest, CreateGetListDelete) {
  const nlohmann::json made = Create(PodRunning("a", "sleep 1000"));
  EXPECT_EQ(KindOf(client_->Create(Resource::kPods, ns_, PodRunning("a", "true")).status()),
            ApiErrorKind::kAlreadyExists);
  WaitForPhase("a", "Running");
  MUSTER_ASSERT_OK_AND_ASSIGN(
      const ObjectList list, client_->List(Resource::kPods, ns_, {.labels = "muster.io/test=yes"}));
  ASSERT_EQ(list.items.size(), 1u);
  EXPECT_EQ(IdentityOf(list.items[0]).uid, IdentityOf(made).uid);
  EXPECT_EQ(client_->List(Resource::kPods, ns_, {.labels = "muster.io/test=no"})->items.size(), 0u);
  // Another object with this name would live on.
  EXPECT_EQ(
      KindOf(client_->Delete(Pod("a"), {.uid = "00000000-0000-0000-0000-000000000000"}).status()),
      ApiErrorKind::kConflict);
  ASSERT_THAT(client_->Delete(Pod("a"), {.uid = IdentityOf(made).uid, .grace = seconds(0)}),
              testing::IsOk());
  EXPECT_EQ(KindOf(client_->Get(Pod("a")).status()), ApiErrorKind::kNotFound);
  EXPECT_EQ(KindOf(client_->Delete(Pod("a"), {}).status()), ApiErrorKind::kNotFound);
}

TEST_F(ClientLiveTest, ChildrenOfADeletedOwnerGo) {
  MUSTER_ASSERT_OK_AND_ASSIGN(
      const nlohmann::json owner,
      client_->Create(Resource::kConfigMaps, ns_, {{"metadata", {{"name", "owner"}}}}));
  nlohmann::json child = PodRunning("child", "sleep 1000");
  child["metadata"]["ownerReferences"] = nlohmann::json::array({{{"apiVersion", "v1"},
                                                                 {"kind", "ConfigMap"},
                                                                 {"name", "owner"},
                                                                 {"uid", IdentityOf(owner).uid}}});
  Create(child);
  WaitForPhase("child", "Running");
  ASSERT_THAT(client_->Delete({.resource = Resource::kConfigMaps, .ns = ns_, .name = "owner"}, {}),
              testing::IsOk());
  const TimePoint end = clock_.Now() + testing::kClusterPatience;
  while (KindOf(client_->Get(Pod("child")).status()) != ApiErrorKind::kNotFound) {
    ASSERT_LT(clock_.Now(), end);
    SleepFor(std::chrono::milliseconds(50));  // as in WaitForPod
  }
}

TEST_F(ClientLiveTest, ManyPages) {
  for (int i = 0; i < 7; ++i) {
    ASSERT_THAT(
        client_->Create(
            Resource::kConfigMaps, ns_,
            {{"metadata", {{"name", "m" + std::to_string(i)}, {"labels", {{"of", "pages"}}}}}}),
        testing::IsOk());
  }
  Client small(credentials_.get(), &clock_, {.page_objects = 3});
  MUSTER_ASSERT_OK_AND_ASSIGN(const ObjectList list,
                              small.List(Resource::kConfigMaps, ns_, {.labels = "of=pages"}));
  EXPECT_EQ(list.items.size(), 7u);
}

TEST_F(ClientLiveTest, WhatTheServerRefuses) {
  const absl::Status invalid =
      client_->Create(Resource::kPods, ns_, {{"metadata", {{"name", "x"}}}}).status();
  EXPECT_EQ(KindOf(invalid), ApiErrorKind::kInvalid);
  EXPECT_THAT(std::string(invalid.message()), HasSubstr("containers"));
  // A change of a version that is not the newest.
  MUSTER_ASSERT_OK_AND_ASSIGN(
      const nlohmann::json made,
      client_->Create(Resource::kConfigMaps, ns_, {{"metadata", {{"name", "m"}}}}));
  const ObjectPlace map{.resource = Resource::kConfigMaps, .ns = ns_, .name = "m"};
  ASSERT_THAT(client_->Patch(map, PatchKind::kMerge, {{"data", {{"a", "1"}}}}), testing::IsOk());
  const nlohmann::json old = {
      {"metadata", {{"resourceVersion", IdentityOf(made).resource_version}}},
      {"data", {{"a", "2"}}}};
  EXPECT_EQ(KindOf(client_->Patch(map, PatchKind::kMerge, old).status()), ApiErrorKind::kConflict);
}

TEST_F(ClientLiveTest, PatchesAndResizes) {
  nlohmann::json pod = PodRunning("a", "sleep 1000");
  pod["spec"]["containers"][0]["resources"] = {{"requests", {{"cpu", "100m"}}}};
  Create(pod);
  WaitForPod("a", [](const nlohmann::json& seen) { return CpuOf(seen) == "100m"; });
  MUSTER_ASSERT_OK_AND_ASSIGN(const nlohmann::json labelled,
                              client_->Patch(Pod("a"), PatchKind::kMerge,
                                             {{"metadata", {{"labels", {{"new", "label"}}}}}}));
  EXPECT_EQ(TextAt(labelled, {"metadata", "labels", "new"}), "label");
  ObjectPlace resize = Pod("a");
  resize.subresource = "resize";
  const auto to = [](const std::string& cpu) -> nlohmann::json {
    return {{"spec",
             {{"containers",
               nlohmann::json::array(
                   {{{"name", "main"}, {"resources", {{"requests", {{"cpu", cpu}}}}}}})}}}};
  };
  ASSERT_THAT(client_->Patch(resize, PatchKind::kStrategicMerge, to("200m")), testing::IsOk());
  const nlohmann::json resized =
      WaitForPod("a", [](const nlohmann::json& seen) { return CpuOf(seen) == "200m"; });
  EXPECT_EQ(ReadPodState(resized).restarts, 0);
  EXPECT_EQ(KindOf(client_->Patch(resize, PatchKind::kStrategicMerge, to("100")).status()),
            ApiErrorKind::kNodeTooSmall);
  // Room that another pod has: the node waits until it is free.
  nlohmann::json other = PodRunning("b", "sleep 1000");
  other["spec"]["containers"][0]["resources"] = {{"requests", {{"cpu", "2"}}}};
  other["spec"]["nodeName"] = TextAt(resized, {"spec", "nodeName"});
  Create(other);
  WaitForPhase("b", "Running");
  ASSERT_THAT(client_->Patch(resize, PatchKind::kStrategicMerge, to("3")), testing::IsOk());
  const nlohmann::json deferred = WaitForPod("a", [](const nlohmann::json& seen) {
    return ReadPodState(seen).resize == PodResize::kDeferred;
  });
  testing::RecordPod(deferred, "resize-deferred");
  // What it has, not what it asks for.
  EXPECT_EQ(CpuOf(deferred), "200m");
  ASSERT_THAT(client_->Delete(Pod("b"), {.grace = seconds(0)}), testing::IsOk());
  WaitForPod("a", [](const nlohmann::json& seen) {
    return CpuOf(seen) == "3" && ReadPodState(seen).resize == PodResize::kNone;
  });
}

TEST_F(ClientLiveTest, Logs) {
  const testing::TempDir shared;
  nlohmann::json pod = PodRunning(
      "a", "echo one; echo two; while [ ! -e /shared/go ]; do sleep 0.05; done; echo three");
  pod["spec"]["volumes"] =
      nlohmann::json::array({{{"name", "shared"}, {"hostPath", {{"path", shared.path()}}}}});
  pod["spec"]["containers"][0]["volumeMounts"] =
      nlohmann::json::array({{{"name", "shared"}, {"mountPath", "/shared"}}});
  Create(pod);
  WaitForPhase("a", "Running");
  std::string text;
  ASSERT_THAT(client_->FollowLogs(ns_, "a", {}, testing::kClusterPatience,
                                  [&](std::string_view bytes) {
                                    const bool is_first = text.find("two") == std::string::npos;
                                    text += bytes;
                                    if (is_first && text.find("two") != std::string::npos) {
                                      EXPECT_THAT(WriteFileAtomically(shared.File("go"), ""),
                                                  testing::IsOk());
                                    }
                                    return absl::OkStatus();
                                  }),
              testing::IsOk());
  EXPECT_EQ(text, "one\ntwo\nthree\n");
  EXPECT_EQ(*client_->Logs(ns_, "a", {.tail_lines = 1}), "three\n");
  EXPECT_EQ(*client_->Logs(ns_, "a", {.since = seconds(3600), .bytes_max = 5}), "one\nt");
  EXPECT_EQ(KindOf(client_->Logs(ns_, "b", {}).status()), ApiErrorKind::kNotFound);
}

}  // namespace
}  // namespace muster::kubernetes
