#include "kubernetes/manifests/pod_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "tests/support/status_matchers.h"

namespace muster::kubernetes {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

ManifestJob JobWith(const std::string& more) {
  absl::StatusOr<ManifestJob> job = ReadManifestJob(R"(apiVersion: muster/v1
kind: TrainingJob
metadata: {name: flights}
spec:
  datasets: [{name: train, files: [/data/a]}]
  replicaSpecs: {worker: {command: [trainer]}}
)" + more,
                                                    "job.yaml", {.ns = "training", .image = "img"});
  EXPECT_THAT(job, testing::IsOk());
  return job.ok() ? *job : ManifestJob{};
}
json NodesOf(const ManifestJob& job) {
  return PodTemplatesOf(job.spec, job.options);
}
json MasterOf(const ManifestJob& job) {
  return MasterTemplateOf(job.spec, job.options);
}

const json& ContainerOf(const json& pod) {
  return pod.at("spec").at("containers").at(0);
}

std::set<std::string> NamesIn(const json& list, const std::string& key) {
  std::set<std::string> names;
  for (const json& entry : list) names.insert(entry.at(key).get<std::string>());
  return names;
}

std::set<std::string> FilesOf(const json& pod, const std::string& volume) {
  for (const json& each : pod.at("spec").at("volumes")) {
    if (each.at("name") == volume) return NamesIn(each.at("secret").at("items"), "key");
  }
  return {};
}

TEST(PodTemplateTest, EveryPodIsRestricted) {
  const ManifestJob job = JobWith("");
  json pods = NodesOf(job);
  pods["master"] = MasterOf(job);
  for (const auto& [role, pod] : pods.items()) {
    const json& spec = pod.at("spec");
    EXPECT_EQ(spec.at("securityContext"),
              json::parse(R"({"runAsNonRoot":true,"runAsUser":10001,"runAsGroup":10001,
                              "fsGroup":10001,"fsGroupChangePolicy":"OnRootMismatch",
                              "seccompProfile":{"type":"RuntimeDefault"}})"));
    EXPECT_EQ(ContainerOf(pod).at("securityContext"),
              json::parse(R"({"allowPrivilegeEscalation":false,"readOnlyRootFilesystem":true,
                              "capabilities":{"drop":["ALL"]}})"));
    EXPECT_EQ(spec.at("enableServiceLinks"), false) << role;
    EXPECT_EQ(spec.at("restartPolicy"), "Never") << role;
    EXPECT_EQ(spec.at("automountServiceAccountToken"), role == "master") << role;
    EXPECT_EQ(ContainerOf(pod).at("image"), "img");
    EXPECT_EQ(ContainerOf(pod).at("name"), "muster");
    // A probe would kill a process that is paused or busy; supervisors and leases judge that.
    for (const char* probe : {"livenessProbe", "readinessProbe", "startupProbe"}) {
      EXPECT_FALSE(ContainerOf(pod).contains(probe)) << role;
    }
    EXPECT_EQ(pod.at("metadata").at("labels"), json({{"app.kubernetes.io/name", "muster"},
                                                     {"app.kubernetes.io/instance", "flights"},
                                                     {"muster/job", "flights"},
                                                     {"muster/role", role}}));
  }
}

TEST(PodTemplateTest, APodHasOnlyItsOwnKeys) {
  const ManifestJob job = JobWith("");
  const json pods = NodesOf(job);
  const json master = MasterOf(job);
  EXPECT_THAT(FilesOf(pods.at("worker"), "muster-tls"),
              UnorderedElementsAre("ca.crt", "worker.crt", "worker.key"));
  EXPECT_THAT(FilesOf(pods.at("ps"), "muster-tls"),
              UnorderedElementsAre("ca.crt", "ps.crt", "ps.key"));
  EXPECT_THAT(FilesOf(master, "muster-tls"),
              UnorderedElementsAre("ca.crt", "master.crt", "master.key", "scaler.crt", "scaler.key",
                                   "operator.crt", "operator.key"));
  EXPECT_THAT(FilesOf(master, "muster-token"), ElementsAre("token"));
  EXPECT_THAT(FilesOf(pods.at("worker"), "muster-token"), ElementsAre());
}

TEST(PodTemplateTest, WhatIsMounted) {
  const ManifestJob job = JobWith("");
  const json pods = NodesOf(job);
  const auto paths = [](const json& pod) {
    return NamesIn(ContainerOf(pod).at("volumeMounts"), "mountPath");
  };
  EXPECT_THAT(paths(pods.at("worker")),
              UnorderedElementsAre("/etc/muster/job", "/etc/muster/tls", "/run/muster", "/tmp"));
  EXPECT_THAT(paths(pods.at("ps")),
              UnorderedElementsAre("/etc/muster/job", "/etc/muster/tls", "/run/muster", "/tmp",
                                   "/var/lib/muster-snapshots"));
  EXPECT_THAT(
      paths(MasterOf(job)),
      UnorderedElementsAre("/etc/muster/job", "/etc/muster/tls", "/run/muster", "/tmp",
                           "/etc/muster/token", "/var/lib/muster", "/var/lib/muster-snapshots"));
}

TEST(PodTemplateTest, SnapshotsElsewhereNeedNoVolume) {
  for (const char* place : {"s3://bucket/a", "/mnt/shared"}) {
    const ManifestJob job = JobWith(std::string("  snapshots: {directory: '") + place + "'}\n");
    EXPECT_FALSE(HasSnapshotVolume(job.spec)) << place;
    EXPECT_FALSE(NamesIn(ContainerOf(NodesOf(job).at("ps")).at("volumeMounts"), "name")
                     .contains("muster-snapshots"));
    EXPECT_FALSE(
        NamesIn(MasterOf(job).at("spec").at("volumes"), "name").contains("muster-snapshots"));
  }
  EXPECT_TRUE(HasSnapshotVolume(JobWith("  snapshots: {directory: shots}\n").spec));
}

TEST(PodTemplateTest, CommandsVariablesAndGrace) {
  const ManifestJob job = JobWith("  drainTimeout: 1500ms\n");
  const json pods = NodesOf(job);
  const json master = MasterOf(job);
  EXPECT_EQ(ContainerOf(pods.at("worker")).at("command"),
            json({"muster", "node", "--role", "worker"}));
  EXPECT_EQ(ContainerOf(pods.at("ps")).at("command"), json({"muster", "node", "--role", "ps"}));
  EXPECT_EQ(ContainerOf(master).at("command"),
            json({"muster", "run", "/etc/muster/job/job.yaml", "--in-cluster"}));
  const auto field_of = [](const json& pod, const std::string& variable) -> std::string {
    for (const json& each : ContainerOf(pod).at("env")) {
      if (each.at("name") == variable) return each.at("valueFrom").at("fieldRef").at("fieldPath");
    }
    return "";
  };
  EXPECT_EQ(field_of(pods.at("ps"), "MUSTER_POD_IP"), "status.podIP");
  EXPECT_EQ(field_of(pods.at("ps"), "MUSTER_HOST"), "spec.nodeName");
  EXPECT_EQ(field_of(pods.at("ps"), "MUSTER_RUN_ID"), "metadata.labels['muster/run']");
  EXPECT_EQ(field_of(master, "MUSTER_RUN_ID"),
            "metadata.labels['batch.kubernetes.io/controller-uid']");
  // A drain, rounded up, and 10 s for the note; servers take snapshots after their drain.
  EXPECT_EQ(pods.at("worker").at("spec").at("terminationGracePeriodSeconds"), 12);
  EXPECT_EQ(pods.at("ps").at("spec").at("terminationGracePeriodSeconds"), 13);
}

TEST(PodTemplateTest, FragmentsOfAllAndOfTheRole) {
  const ManifestJob job = JobWith(R"(  kubernetes:
    state: {claim: my-state}
    snapshots: {claim: my-shots}
    podTemplates:
      all:
        metadata: {labels: {team: ads}}
        spec:
          schedulerName: overridden
          tolerations: [{key: a, operator: Exists}]
          volumes: [{name: data, persistentVolumeClaim: {claimName: flights}}]
          containers: [{name: muster, volumeMounts: [{name: data, mountPath: /data}]}]
      worker:
        spec:
          schedulerName: volcano
          securityContext: {fsGroup: 7}
          tolerations: [{key: b, operator: Exists}]
          containers:
            - {name: muster, image: other, securityContext: {readOnlyRootFilesystem: false}}
      master: {spec: {containers: [{name: muster, resources: {limits: {memory: 9Gi}}}]}}
)");
  const json worker = NodesOf(job).at("worker");
  EXPECT_EQ(worker.at("metadata").at("labels").at("team"), "ads");
  EXPECT_EQ(worker.at("metadata").at("labels").at("muster/job"), "flights");
  EXPECT_EQ(worker.at("spec").at("schedulerName"), "volcano");
  EXPECT_EQ(worker.at("spec").at("securityContext").at("fsGroup"), 7);
  EXPECT_EQ(worker.at("spec").at("securityContext").at("runAsUser"), 10001);
  EXPECT_EQ(worker.at("spec").at("tolerations").size(), 2u);
  EXPECT_EQ(ContainerOf(worker).at("image"), "other");
  EXPECT_EQ(ContainerOf(worker).at("securityContext").at("readOnlyRootFilesystem"), false);
  EXPECT_EQ(ContainerOf(worker).at("securityContext").at("allowPrivilegeEscalation"), false);
  EXPECT_TRUE(NamesIn(ContainerOf(worker).at("volumeMounts"), "mountPath").contains("/data"));
  const json master = MasterOf(job);
  EXPECT_EQ(ContainerOf(master).at("image"), "img");
  EXPECT_EQ(ContainerOf(master).at("resources"),
            json::parse(R"({"requests":{"cpu":"500m","memory":"1Gi"},"limits":{"memory":"9Gi"}})"));
  std::set<std::string> claims;
  for (const json& volume : master.at("spec").at("volumes")) {
    if (!volume.contains("persistentVolumeClaim")) continue;
    claims.insert(volume.at("persistentVolumeClaim").at("claimName").get<std::string>());
  }
  EXPECT_THAT(claims, UnorderedElementsAre("flights", "my-state", "my-shots"));
}

TEST(PodTemplateTest, NodesAskForWhatTheJobFileSays) {
  ManifestJob job = JobWith("");
  job.spec.ps.requests = {.cpu = 1.5, .memory_bytes = 1024};
  job.spec.ps.limits = {.memory_bytes = 2048};
  EXPECT_EQ(
      ContainerOf(NodesOf(job).at("ps")).at("resources"),
      json::parse(R"({"requests":{"cpu":"1500m","memory":"1024"},"limits":{"memory":"2048"}})"));
  EXPECT_FALSE(ContainerOf(NodesOf(job).at("worker")).contains("resources"));
}

}  // namespace
}  // namespace muster::kubernetes
