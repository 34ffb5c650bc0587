#include "kubernetes/manifests/export_pod.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kubernetes/manifests/objects.h"
#include "kubernetes/manifests/pod_template.h"
#include "tests/support/status_matchers.h"

namespace muster::kubernetes {
namespace {

using nlohmann::json;
using ::testing::UnorderedElementsAre;

constexpr char kJobFile[] = R"(apiVersion: muster/v1
kind: TrainingJob
metadata: {name: ads}
spec:
  datasets: [{name: train, files: [/data/a]}]
  replicaSpecs: {worker: {command: [trainer]}}
  kubernetes:
    podTemplates:
      all: {spec: {imagePullSecrets: [{name: registry}], nodeSelector: {disk: near}}}
      ps: {spec: {containers: [{name: muster, lifecycle: {}}, {name: other, image: x}]}}
)";

std::string PodsText() {
  const absl::StatusOr<ManifestJob> job =
      ReadManifestJob(kJobFile, "job.yaml", {.ns = "", .image = "img"});
  EXPECT_THAT(job, testing::IsOk());
  return PodTemplatesOf(job->spec, job->options).dump();
}

json BodyOf(const ExportPod& pod) {
  const absl::StatusOr<json> body = ExportPodBody(pod, PodsText());
  EXPECT_THAT(body, testing::IsOk());
  return body.ok() ? *body : json();
}

json MountOf(const json& pod, const std::string& name) {
  for (const json& mount : pod.at("spec").at("containers").at(0).at("volumeMounts")) {
    if (mount.at("name") == name) return mount;
  }
  return nullptr;
}

TEST(ExportPod, IsAPodOfTheJobWithAnEndOfItsOwn) {
  const json pod = BodyOf({.job = "ads", .state_claim = "ads-state"});
  EXPECT_EQ(pod.at("kind"), "Pod");
  EXPECT_EQ(pod.at("metadata").at("name"), "ads-export");
  EXPECT_EQ(pod.at("metadata").at("labels").at("muster/job"), "ads");
  EXPECT_EQ(pod.at("metadata").at("labels").at("muster/role"), "export");
  // Else the scaler would take it for a node of its run.
  EXPECT_FALSE(pod.at("metadata").at("labels").contains("muster/run"));
  EXPECT_FALSE(pod.at("metadata").contains("ownerReferences"));
  const json& spec = pod.at("spec");
  EXPECT_EQ(spec.at("restartPolicy"), "Never");
  EXPECT_GT(spec.at("activeDeadlineSeconds"), 0);
  EXPECT_EQ(spec.at("containers").at(0).at("command"), json({"muster", "serve-export"}));
  EXPECT_EQ(spec.at("containers").at(0).at("image"), "img");
  EXPECT_EQ(spec.at("containers").at(0).at("resources").at("requests").size(), 2u);
  EXPECT_EQ(spec.at("imagePullSecrets").at(0).at("name"), "registry");
  EXPECT_EQ(spec.at("nodeSelector").at("disk"), "near");
  EXPECT_EQ(spec.at("automountServiceAccountToken"), false);
}

TEST(ExportPod, BelongsToTheJobIfItIsThere) {
  const json pod = BodyOf({.job = "ads", .owner_uid = "u"});
  const json& owner = pod.at("metadata").at("ownerReferences").at(0);
  EXPECT_EQ(owner.at("kind"), "Job");
  EXPECT_EQ(owner.at("uid"), "u");
  EXPECT_EQ(owner.at("controller"), false);
}

TEST(ExportPod, StateIsThereOnlyIfItIsNeededAndCannotBeChanged) {
  const json ended = BodyOf({.job = "ads", .state_claim = "mine"});
  EXPECT_THAT(ClaimsOf(ended), UnorderedElementsAre("ads-snapshots", "mine"));
  EXPECT_EQ(MountOf(ended, "muster-state").at("readOnly"), true);
  EXPECT_EQ(MountOf(ended, "muster-state").at("mountPath"), "/var/lib/muster");
  EXPECT_EQ(MountOf(ended, "muster-snapshots").at("mountPath"), "/var/lib/muster-snapshots");
  EXPECT_EQ(MountOf(ended, "muster-token").at("mountPath"), "/etc/muster/token");
  EXPECT_FALSE(MountOf(ended, "muster-export").contains("readOnly"));
  const json running = BodyOf({.job = "ads"});
  EXPECT_THAT(ClaimsOf(running), UnorderedElementsAre("ads-snapshots"));
  EXPECT_TRUE(MountOf(running, "muster-state").is_null());
}

TEST(ExportPod, NeedsATemplate) {
  for (const char* const text : {"", "{}", R"({"ps": {"spec": {"containers": []}}})"}) {
    EXPECT_FALSE(ExportPodBody({.job = "ads"}, text).ok()) << text;
  }
}

}  // namespace
}  // namespace muster::kubernetes
