// spec.kubernetes, by way of whole job files.
#include <string>
#include <vector>

#include "job/file/job_file.h"
#include "job/file/pod_fragment.h"
#include "tests/support/status_matchers.h"

namespace muster {
namespace {

using ::muster::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

absl::StatusOr<JobSpec> ParseKubernetes(const std::string& kubernetes) {
  return ParseJobFile(R"(apiVersion: muster/v1
kind: TrainingJob
metadata: {name: clicks}
spec:
  datasets: [{name: train, files: [/data/a]}]
  replicaSpecs: {worker: {command: [./trainer]}}
  kubernetes:
)" + kubernetes,
                      "job.yaml", "/jobs/clicks");
}

/// A fragment for workers, as text of YAML in one line.
absl::StatusOr<JobSpec> ParseFragment(const std::string& fragment) {
  return ParseKubernetes("    podTemplates: {worker: " + fragment + "}\n");
}

TEST(KubernetesFieldsTest, EveryFieldIsRead) {
  MUSTER_ASSERT_OK_AND_ASSIGN(const JobSpec job, ParseKubernetes(R"(
    image: registry.example.org/team/flights:1.2
    namespace: training
    state: {size: 1Gi, storageClass: fast, claim: kept.state}
    snapshots: {size: 2Gi, storageClass: shared, claim: kept}
    podTemplates:
      all: {spec: {priorityClassName: low}}
      master: {spec: {nodeName: a}}
      ps: {spec: {nodeName: b}}
      worker: {spec: {nodeName: c}}
)"));
  const KubernetesSpec& kubernetes = job.kubernetes;
  EXPECT_EQ(kubernetes.image, "registry.example.org/team/flights:1.2");
  EXPECT_EQ(kubernetes.ns, "training");
  EXPECT_EQ(kubernetes.state.size_bytes, uint64_t{1} << 30);
  EXPECT_EQ(kubernetes.state.storage_class, "fast");
  EXPECT_EQ(kubernetes.state.claim, "kept.state");
  EXPECT_EQ(kubernetes.snapshots.size_bytes, uint64_t{2} << 30);
  EXPECT_EQ(kubernetes.snapshots.storage_class, "shared");
  EXPECT_EQ(kubernetes.snapshots.claim, "kept");
  EXPECT_EQ(kubernetes.pod_templates.all, R"({"spec":{"priorityClassName":"low"}})");
  EXPECT_EQ(kubernetes.pod_templates.master, R"({"spec":{"nodeName":"a"}})");
  EXPECT_EQ(kubernetes.pod_templates.ps, R"({"spec":{"nodeName":"b"}})");
  EXPECT_EQ(kubernetes.pod_templates.worker, R"({"spec":{"nodeName":"c"}})");
}

TEST(KubernetesFieldsTest, AFragmentKeepsWhatMusterDoesNotKnow) {
  MUSTER_ASSERT_OK_AND_ASSIGN(
      const JobSpec job,
      ParseFragment("{spec: {fromTheFuture: {a: [1, -2, 0x1F, 0644, 0o17, 1.5, true, FALSE, ~, "
                    "'1', \"true\", 1.2.3, 1e3, yes, 08, \"quo\\\"te\"]}}}"));
  EXPECT_EQ(job.kubernetes.pod_templates.worker,
            R"({"spec":{"fromTheFuture":{"a":[1,-2,31,420,15,1.5,true,false,null,"1","true",)"
            R"("1.2.3",1000.0,"yes",8.0,"quo\"te"]}}})");
}

TEST(KubernetesFieldsTest, WhatAFragmentMaySay) {
  for (const char* fragment :
       {"{metadata: {labels: {team: ads}, annotations: {a/b: '1'}}}",
        "{spec: {containers: [{name: muster, env: [{name: MUSTER_FAILPOINTS, value: list}]}]}}",
        "{spec: {containers: [{name: muster, resources: {limits: {nvidia.com/gpu: 1}}}]}}",
        "{spec: {containers: [{name: side, command: [a], resources: {limits: {cpu: 1}}}]}}",
        "{spec: {volumes: [{name: data, emptyDir: {}}], tolerations: [{operator: Exists}]}}",
        "{spec: {tolerations: null, nodeSelector: null, initContainers: ~}}",
        "{metadata: {annotations: {a: null}, labels: {b: ~}}}", "{metadata: {annotations: null}}",
        "{spec: {containers: [{name: side, env: null}]}}",
        "{spec: {containers: [{name: muster, resources: null}]}}", "{spec: null}", "{metadata: ~}",
        "null"}) {
    EXPECT_THAT(ParseFragment(fragment), testing::IsOk()) << fragment;
  }
}

TEST(KubernetesFieldsTest, WhatMusterSetsIsRefusedWithItsPath) {
  const struct {
    const char* fragment;
    const char* path;
    const char* what;
  } cases[] = {
      {"[1]", "", "expected a fragment of a pod template, got a list"},
      {"{nodeSelector: {a: b}}", "nodeSelector", "is this a field of spec?"},
      {"{spec: 1}", "spec", "expected a group of fields, got '1'"},
      {"{metadata: {name: a}}", "metadata.name", "only labels and annotations"},
      {"{metadata: {labels: {muster/job: a}}}", "metadata.labels.muster/job", "begin with muster/"},
      {"{metadata: {labels: {batch.kubernetes.io/controller-uid: a}}}",
       "metadata.labels.batch.kubernetes.io/controller-uid", "begin with batch.kubernetes.io/"},
      {"{metadata: {labels: {a: 1}}}", "metadata.labels.a", "must be text, not '1'"},
      {"{metadata: {annotations: {a: true}}}", "metadata.annotations.a", "put it in quotes"},
      {"{spec: {nodeSelector: {gpu: true}}}", "spec.nodeSelector.gpu", "must be text"},
      {"{spec: {restartPolicy: Always}}", "spec.restartPolicy", "is set by Muster"},
      {"{metadata: {labels: [a]}}", "metadata.labels", "expected names with text, got a list"},
      {"{metadata: {labels: null}}", "metadata.labels", "got nothing"},
      {"{spec: {volumes: null}}", "spec.volumes", "expected a list, got nothing"},
      {"{spec: {containers: null}}", "spec.containers", "expected a list, got nothing"},
      {"{spec: {containers: [{name: muster, env: null}]}}", "spec.containers[0].env",
       "cannot be removed"},
      {"{spec: {containers: [{name: muster, image: ~}]}}", "spec.containers[0].image",
       "cannot be removed"},
      {"{spec: {containers: {}}}", "spec.containers", "expected a list"},
      {"{spec: {containers: [{image: a}]}}", "spec.containers[0]", "needs a name"},
      {"{spec: {containers: [{name: a}, {name: muster, command: [a]}]}}",
       "spec.containers[1].command", "spec.replicaSpecs.worker.command"},
      {"{spec: {containers: [{name: muster, args: [a]}]}}", "spec.containers[0].args",
       "sets the command"},
      {"{spec: {containers: [{name: muster, terminationMessagePath: /a}]}}",
       "spec.containers[0].terminationMessagePath", "is set by Muster"},
      {"{spec: {containers: [{name: muster, env: [{name: MUSTER_NODE, value: a}]}]}}",
       "spec.containers[0].env[0]", "MUSTER_NODE is set by Muster"},
      {"{spec: {containers: [{name: side, env: [{name: A, value: 1}]}]}}",
       "spec.containers[0].env[0].value", "must be text, not '1'"},
      {"{spec: {containers: [{name: muster, resources: {limits: {memory: 1Gi}}}]}}",
       "spec.containers[0].resources.limits.memory", "spec.replicaSpecs.ROLE.resources"},
      {"{spec: {containers: [{name: muster, volumeMounts: [{mountPath: /etc/muster/tls}]}]}}",
       "spec.containers[0].volumeMounts[0]", "below /etc/muster"},
      {"{spec: {initContainers: [{name: muster}]}}", "spec.initContainers[0]", "is taken"},
      {"{spec: {volumes: [{name: muster-tls}]}}", "spec.volumes[0]", "begin with muster-"},
      {"{spec: {affinity: {a: 1, a: 2}}}", "spec.affinity.a", "is given twice"},
      {"{spec: {tolerations: [{$patch: delete}]}}", "spec.tolerations[0].$patch",
       "null removes a field"},
  };
  for (const auto& [fragment, path, what] : cases) {
    const std::string place = *path == 0 ? "" : std::string(path) + " (line 8): ";
    EXPECT_THAT(ParseFragment(fragment),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("job.yaml:8:"),
                               HasSubstr("spec.kubernetes.podTemplates.worker: " + place),
                               HasSubstr(what))))
        << fragment;
  }
}

TEST(KubernetesFieldsTest, TheMastersResourcesAreTheFragments) {
  EXPECT_THAT(ParseKubernetes("    podTemplates: {master: {spec: {containers: [{name: muster, "
                              "resources: {limits: {memory: 4Gi}}}]}}}"),
              testing::IsOk());
}

TEST(KubernetesFieldsTest, BoundsAndNames) {
  EXPECT_THAT(ParseKubernetes("    image: 'a b'"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("job.yaml:8:12: spec.kubernetes.image: the name of an image")));
  EXPECT_THAT(ParseKubernetes("    namespace: Big"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("is not a name")));
  for (const char* field : {"state: {claim: a_b}", "state: {storageClass: a..b}",
                            "snapshots: {claim: .a}", "snapshots: {storageClass: A}"}) {
    EXPECT_THAT(ParseKubernetes(std::string("    ") + field),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("is not the name of an object of Kubernetes")))
        << field;
  }
  EXPECT_THAT(ParseKubernetes("    state: {size: 1}"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("64Mi to 1024Ti")));
  EXPECT_THAT(ParseFragment("{spec: {a: '" + std::string(66'000, 'x') + "'}}"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("up to 64Ki")));
}

TEST(KubernetesFieldsTest, AnAffinityIsNotTooDeep) {
  EXPECT_THAT(ParseKubernetes(R"(
    podTemplates:
      worker:
        spec:
          affinity:
            podAntiAffinity:
              preferredDuringSchedulingIgnoredDuringExecution:
                - weight: 1
                  podAffinityTerm:
                    topologyKey: a
                    labelSelector:
                      matchExpressions:
                        - {key: muster/role, operator: In, values: [ps]}
)"),
              testing::IsOk());
}

}  // namespace
}  // namespace muster
