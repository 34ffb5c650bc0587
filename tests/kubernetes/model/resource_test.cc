#include "kubernetes/model/resource.h"

#include <gtest/gtest.h>

#include "tests/support/status_matchers.h"

namespace muster::kubernetes {
namespace {

using std::chrono::seconds;
using ::testing::_;
using ::testing::HasSubstr;

TEST(Resource, Paths) {
  const struct {
    ObjectPlace place;
    const char* path;
  } kCases[] = {
      {{Resource::kPods, "team", "", ""}, "/api/v1/namespaces/team/pods"},
      {{Resource::kPods, "team", "a-0", ""}, "/api/v1/namespaces/team/pods/a-0"},
      {{Resource::kPods, "team", "a-0", "resize"}, "/api/v1/namespaces/team/pods/a-0/resize"},
      {{Resource::kJobs, "team", "a", ""}, "/apis/batch/v1/namespaces/team/jobs/a"},
      {{Resource::kServices, "t", "", ""}, "/api/v1/namespaces/t/services"},
      {{Resource::kConfigMaps, "t", "", ""}, "/api/v1/namespaces/t/configmaps"},
      {{Resource::kSecrets, "t", "", ""}, "/api/v1/namespaces/t/secrets"},
      {{Resource::kPersistentVolumeClaims, "t", "", ""},
       "/api/v1/namespaces/t/persistentvolumeclaims"},
      {{Resource::kEvents, "t", "", ""}, "/api/v1/namespaces/t/events"},
      {{Resource::kServiceAccounts, "t", "a", ""}, "/api/v1/namespaces/t/serviceaccounts/a"},
      {{Resource::kRoles, "t", "a", ""}, "/apis/rbac.authorization.k8s.io/v1/namespaces/t/roles/a"},
      {{Resource::kRoleBindings, "t", "", ""},
       "/apis/rbac.authorization.k8s.io/v1/namespaces/t/rolebindings"},
      {{Resource::kSelfSubjectAccessReviews, "", "", ""},
       "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"},
  };
  for (const auto& one : kCases) {
    MUSTER_ASSERT_OK_AND_ASSIGN(const std::string path, PathOf(one.place));
    EXPECT_EQ(path, one.path);
  }
}

TEST(Resource, NoNameLeavesItsPlaceInAPath) {
  for (const ObjectPlace& place :
       {ObjectPlace{Resource::kPods, "", "a", ""}, ObjectPlace{Resource::kPods, "a/b", "a", ""},
        ObjectPlace{Resource::kPods, "t", "../x", ""}, ObjectPlace{Resource::kPods, "t", "a?x", ""},
        ObjectPlace{Resource::kPods, "t", "a", "log?x"},
        ObjectPlace{Resource::kPods, "t", "a%2fb", ""}}) {
    EXPECT_THAT(PathOf(place), testing::StatusIs(absl::StatusCode::kInvalidArgument, _))
        << place.ns << " " << place.name;
  }
}

TEST(Resource, Names) {
  EXPECT_THAT(CheckObjectName("ads-worker-0-1"), testing::IsOk());
  EXPECT_THAT(CheckObjectName("a.b-c.d"), testing::IsOk());
  EXPECT_THAT(CheckObjectName(std::string(253, 'a')), testing::IsOk());
  EXPECT_THAT(CheckLabel(std::string(63, 'a')), testing::IsOk());
  for (const std::string& name :
       {std::string(), std::string("A"), std::string("a_b"), std::string("-a"), std::string("a-"),
        std::string("a..b"), std::string("a."), std::string(254, 'a')}) {
    EXPECT_THAT(CheckObjectName(name), testing::StatusIs(absl::StatusCode::kInvalidArgument, _))
        << name;
  }
  EXPECT_THAT(CheckLabel("a.b"), testing::StatusIs(absl::StatusCode::kInvalidArgument, _));
  EXPECT_THAT(CheckLabel(std::string(64, 'a')),
              testing::StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("63")));
}

TEST(Resource, Queries) {
  EXPECT_EQ(ListQuery({}, 0, ""), "");
  EXPECT_EQ(ListQuery({.labels = "muster.io/job=ads", .fields = "spec.nodeName=n1"}, 500, "a+b="),
            "?labelSelector=muster.io%2Fjob%3Dads&fieldSelector=spec.nodeName%3Dn1&limit=500"
            "&continue=a%2Bb%3D");
  EXPECT_EQ(WatchQuery({}, "77", seconds(30)),
            "?watch=true&allowWatchBookmarks=true&timeoutSeconds=30&resourceVersion=77");
  EXPECT_EQ(LogQueryText({}), "");
  EXPECT_EQ(LogQueryText({.container = "main",
                          .follow = true,
                          .previous = true,
                          .since = seconds(5),
                          .tail_lines = 0,
                          .bytes_max = 10}),
            "?container=main&follow=true&previous=true&sinceSeconds=5&tailLines=0&limitBytes=10");
  EXPECT_EQ(LogQueryText({.timestamps = true, .since_time = "2026-11-26T13:30:00Z"}),
            "?timestamps=true&sinceTime=2026-11-26T13%3A30%3A00Z");
}

TEST(Resource, Bodies) {
  const nlohmann::json plain = DeleteBody({});
  EXPECT_FALSE(plain.contains("preconditions"));
  EXPECT_FALSE(plain.contains("gracePeriodSeconds"));
  EXPECT_EQ(plain["propagationPolicy"], "Background");
  const nlohmann::json exact = DeleteBody({.uid = "u", .grace = seconds(0), .foreground = true});
  EXPECT_EQ(exact["preconditions"]["uid"], "u");
  EXPECT_EQ(exact["gracePeriodSeconds"], 0);
  EXPECT_EQ(exact["propagationPolicy"], "Foreground");
  const nlohmann::json review = AccessReviewBody("get", Resource::kPods, "log", "team");
  EXPECT_EQ(review["apiVersion"], "authorization.k8s.io/v1");
  EXPECT_EQ(review["spec"]["resourceAttributes"]["subresource"], "log");
  EXPECT_EQ(ContentTypeOf(PatchKind::kMerge), "application/merge-patch+json");
  EXPECT_EQ(ContentTypeOf(PatchKind::kStrategicMerge), "application/strategic-merge-patch+json");
  EXPECT_EQ(ContentTypeOf(PatchKind::kJson), "application/json-patch+json");
}

TEST(Resource, IsKnownByItsKind) {
  EXPECT_EQ(ResourceOfKind("RoleBinding"), Resource::kRoleBindings);
  EXPECT_EQ(ResourceOfKind("Pod"), Resource::kPods);
  EXPECT_EQ(ResourceOfKind("Node"), std::nullopt);
}

TEST(Resource, ApplySaysForWhom) {
  EXPECT_EQ(ContentTypeOf(PatchKind::kApply), "application/apply-patch+yaml");
  EXPECT_EQ(PatchQuery(PatchKind::kApply), "?fieldManager=muster&force=true");
  EXPECT_EQ(PatchQuery(PatchKind::kMerge), "");
}

}  // namespace
}  // namespace muster::kubernetes
