#include "kubernetes/manifests/objects.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "kubernetes/manifests/pod_template.h"
#include "tests/support/status_matchers.h"

namespace muster::kubernetes {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::StatusIs;

std::string TextWith(const std::string& name, const std::string& more) {
  return R"(apiVersion: muster/v1
kind: TrainingJob
metadata: {name: )" +
         name + R"(}
spec:
  datasets: [{name: train, files: [/data/a]}]
  replicaSpecs: {worker: {command: [trainer]}}
)" + more;
}
absl::StatusOr<ManifestJob> Read(const std::string& text) {
  return ReadManifestJob(text, "job.yaml", {.ns = "", .image = "img"});
}
std::vector<json> ObjectsWith(const std::string& more) {
  const absl::StatusOr<ManifestJob> job = Read(TextWith("flights", more));
  EXPECT_THAT(job, testing::IsOk());
  return job.ok() ? ObjectsOf(job->spec, job->options) : std::vector<json>{};
}
std::vector<std::string> KindsOf(const std::vector<json>& objects) {
  std::vector<std::string> kinds;
  for (const json& each : objects) kinds.push_back(each.at("kind").get<std::string>());
  return kinds;
}
json KindIn(const std::vector<json>& objects, const std::string& kind) {
  for (const json& each : objects) {
    if (each.at("kind") == kind) return each;
  }
  ADD_FAILURE() << "no " << kind;
  return {};
}

TEST(ObjectsTest, KindsNamesAndLabelsInTheOrderOfApplying) {
  const std::vector<json> objects = ObjectsWith("");
  EXPECT_THAT(KindsOf(objects),
              ElementsAre("ServiceAccount", "Role", "RoleBinding", "ConfigMap",
                          "PersistentVolumeClaim", "PersistentVolumeClaim", "Service", "Job"));
  std::vector<std::string> names;
  for (const json& each : objects) {
    names.push_back(each.at("metadata").at("name").get<std::string>());
    EXPECT_EQ(each.at("metadata").at("namespace"), "default");
    EXPECT_EQ(each.at("metadata").at("labels").at("muster/job"), "flights");
  }
  EXPECT_THAT(names,
              ElementsAre("flights-muster", "flights-muster", "flights-muster", "flights-muster",
                          "flights-state", "flights-snapshots", "flights-master", "flights"));
}

TEST(ObjectsTest, TheFlagIsBeforeTheJobFile) {
  const std::string text = TextWith("a", "  kubernetes: {image: mine, namespace: training}\n");
  MUSTER_ASSERT_OK_AND_ASSIGN(ManifestJob job, ReadManifestJob(text, "job.yaml", {}));
  EXPECT_EQ(job.options.ns, "training");
  EXPECT_EQ(job.options.image, "mine");
  MUSTER_ASSERT_OK_AND_ASSIGN(job, ReadManifestJob(text, "job.yaml", {.ns = "b", .image = "c"}));
  EXPECT_EQ(job.options.ns, "b");
  EXPECT_EQ(job.options.image, "c");
}

TEST(ObjectsTest, TheNamespaceOfTheFlagIsAName) {
  for (const char* ns : {"Team", "a b", "-a", "a\nkind: Secret"}) {
    EXPECT_THAT(ReadManifestJob(TextWith("a", ""), "job.yaml", {.ns = ns, .image = "img"}),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("is no name")))
        << ns;
  }
}

TEST(ObjectsTest, TheRoleHasTheLeastRights) {
  const std::vector<json> objects = ObjectsWith("");
  EXPECT_EQ(KindIn(objects, "Role").at("rules"), json::parse(R"([
      {"apiGroups":[""],"resources":["pods"],"verbs":["get","list","watch","create","delete"]},
      {"apiGroups":[""],"resources":["pods/log"],"verbs":["get"]},
      {"apiGroups":[""],"resources":["pods/resize"],"verbs":["patch"]}])"));
  EXPECT_EQ(KindIn(objects, "RoleBinding").at("subjects"), json::parse(R"([
      {"kind":"ServiceAccount","name":"flights-muster","namespace":"default"}])"));
}

TEST(ObjectsTest, AnAccountOfTheUsersOwnGetsTheRights) {
  const std::vector<json> objects = ObjectsWith(
      "  kubernetes: {podTemplates: {master: {spec: {serviceAccountName: reads-s3}}}}\n");
  EXPECT_EQ(KindsOf(objects).front(), "Role");
  EXPECT_EQ(KindIn(objects, "RoleBinding").at("subjects").at(0).at("name"), "reads-s3");
}

/// Every pod of the namespace has the token of its account `default`.
TEST(ObjectsTest, TheNamespacesOwnAccountGetsNoRightsByAccident) {
  for (const char* pods : {"all", "master"}) {
    for (const char* name : {"null", "~", "''", "7", "[]"}) {
      EXPECT_THAT(Read(TextWith("flights", std::string("  kubernetes: {podTemplates: {") + pods +
                                               ": {spec: {serviceAccountName: " + name + "}}}}\n")),
                  StatusIs(absl::StatusCode::kInvalidArgument,
                           AllOf(HasSubstr("spec.serviceAccountName"),
                                 HasSubstr("must be the name of a ServiceAccount; leave it out"))))
          << pods << name;
    }
  }
}

TEST(ObjectsTest, TheConfigMapHasTheFileWordForWordAndTheTemplates) {
  const std::string more = "  # a comment\n";
  const json data = KindIn(ObjectsWith(more), "ConfigMap").at("data");
  EXPECT_EQ(data.at("job.yaml"), TextWith("flights", more));
  const json pods = json::parse(data.at("pods.json").get<std::string>());
  const ManifestJob job = Read(TextWith("flights", more)).value();
  EXPECT_EQ(pods, PodTemplatesOf(job.spec, job.options));
}

TEST(ObjectsTest, Claims) {
  std::vector<json> objects =
      ObjectsWith("  kubernetes: {state: {size: 1Gi, storageClass: ssd}}\n");
  const json claim = KindIn(objects, "PersistentVolumeClaim").at("spec");
  EXPECT_EQ(claim, json::parse(R"({"accessModes":["ReadWriteOnce"],"storageClassName":"ssd",
                                   "resources":{"requests":{"storage":"1073741824"}}})"));
  EXPECT_EQ(objects.at(5).at("spec").at("accessModes"), json::array({"ReadWriteMany"}));
  EXPECT_FALSE(objects.at(5).at("spec").contains("storageClassName"));
  for (const char* more :
       {"  kubernetes: {state: {claim: a}}\n  snapshots: {directory: 's3://bucket/c'}\n",
        "  kubernetes: {state: {claim: a}, snapshots: {claim: b}}\n"}) {
    EXPECT_THAT(KindsOf(ObjectsWith(more)), ElementsAre("ServiceAccount", "Role", "RoleBinding",
                                                        "ConfigMap", "Service", "Job"));
  }
}

TEST(ObjectsTest, TheJobEndsWhenTheRunSaysSoAndNeverHasTwoPods) {
  const json job = KindIn(ObjectsWith("  kubernetes: {podTemplates: {all: {metadata: {labels: "
                                      "{kueue.x-k8s.io/queue-name: q}, annotations: {a: b}}}}}\n"),
                          "Job");
  const json& spec = job.at("spec");
  EXPECT_EQ(spec.at("podReplacementPolicy"), "Failed");
  EXPECT_EQ(spec.at("podFailurePolicy").at("rules"), json::parse(R"([
      {"action":"Ignore","onPodConditions":[{"type":"DisruptionTarget","status":"True"}]},
      {"action":"FailJob","onExitCodes":{"containerName":"muster","operator":"In",
                                         "values":[1,2,3,4,7]}}])"));
  EXPECT_GT(spec.at("backoffLimit").get<int>(), 1'000'000);
  // Queues look at the Job's own labels.
  EXPECT_EQ(job.at("metadata").at("labels").at("kueue.x-k8s.io/queue-name"), "q");
  EXPECT_EQ(job.at("metadata").at("annotations").at("a"), "b");
  EXPECT_FALSE(job.at("metadata").at("labels").contains("muster/role"));
}

TEST(ObjectsTest, TheServiceFindsTheMaster) {
  const json spec = KindIn(ObjectsWith(""), "Service").at("spec");
  EXPECT_EQ(spec.at("clusterIP"), "None");
  EXPECT_EQ(spec.at("publishNotReadyAddresses"), true);
  EXPECT_EQ(spec.at("selector"), json({{"muster/job", "flights"}, {"muster/role", "master"}}));
  EXPECT_EQ(spec.at("ports").at(0).at("port"), 7171);
  EXPECT_EQ(spec.at("ports").at(1).at("port"), 7172);
}

TEST(ObjectsTest, WhatKubernetesDemandsBeyondTheJobFile) {
  const std::string long_name(56, 'a');
  EXPECT_THAT(Read(TextWith(long_name, "")), testing::IsOk());
  const struct {
    std::string text;
    std::string what;
  } cases[] = {
      {TextWith(long_name + "a", ""), "metadata.name: 'aa"},
      {TextWith("7a", ""), "metadata.name: '7a' must begin with a letter"},
      {TextWith("a", "  security: {certificates: /etc/mine}\n"),
       "certificates are in the Secret a-muster"},
      {TextWith("a", "  security: {insecure: true}\n"), "spec.security.insecure: on Kubernetes"},
      {TextWith("a", "  snapshots: {s3: {caFile: ca.pem}}\n"),
       "spec.snapshots.s3.caFile: 'ca.pem' is relative"},
      {TextWith("a", "  snapshots: {s3: {credentialsFile: c}}\n"),
       "spec.snapshots.s3.credentialsFile: 'c' is relative"},
      {TextWith("a", "  # " + std::string(1'000'000, 'x') + "\n"), "a ConfigMap holds 1000000"},
  };
  for (const auto& [text, what] : cases) {
    EXPECT_THAT(Read(text), StatusIs(absl::StatusCode::kInvalidArgument,
                                     AllOf(HasSubstr("job.yaml: "), HasSubstr(what))));
  }
  EXPECT_THAT(ReadManifestJob(TextWith("a", ""), "job.yaml", {}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("or with --image")));
}

TEST(ObjectsTest, RelativePathsAreRefusedAllAtOnce) {
  const std::string text = R"(apiVersion: muster/v1
kind: TrainingJob
metadata: {name: a}
spec:
  datasets: [{name: train, files: [/data/a, 'b-*']}]
  replicaSpecs: {worker: {command: [build/trainer]}}
)";
  EXPECT_THAT(Read(text),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("spec.datasets[0].files: 'b-*' is relative"),
                             HasSubstr("spec.replicaSpecs.worker.command: 'build/trainer'"))));
}

TEST(ObjectsTest, JobConfigMapAndPodHaveTheDigestOfTheFile) {
  const std::vector<json> objects = ObjectsWith("");
  const json job = KindIn(objects, "Job");
  const std::string digest = job.at("metadata").at("annotations").at("muster/job-file");
  EXPECT_EQ(KindIn(objects, "ConfigMap").at("data").at("digest"), digest);
  const json& variables = job.at("spec").at("template").at("spec").at("containers").at(0).at("env");
  EXPECT_EQ(
      std::ranges::count(variables, json{{"name", "MUSTER_JOB_FILE_DIGEST"}, {"value", digest}}),
      1);
  const auto of = [](const std::string& file, const std::string& image) {
    return FileDigestOf({.ns = "a", .image = image, .job_file = file});
  };
  EXPECT_NE(of("f", "i"), of("g", "i"));
  EXPECT_NE(of("f", "i"), of("f", "j"));
  EXPECT_EQ(of("f", "i"), FileDigestOf({.ns = "b", .image = "i", .job_file = "f"}));
}

}  // namespace
}  // namespace muster::kubernetes
