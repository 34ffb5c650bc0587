#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "base/file.h"
#include "kubernetes/manifests/kustomize.h"
#include "kubernetes/manifests/objects.h"
#include "kubernetes/manifests/pod_template.h"
#include "kubernetes/manifests/yaml_text.h"
#include "kubernetes/model/json_access.h"
#include "tests/kubernetes/live/plane.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster::kubernetes {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using testing::Kubectl;
using ::testing::Not;

constexpr char kPlainJob[] = R"(apiVersion: muster/v1
kind: TrainingJob
metadata: {name: flights}
spec:
  datasets: [{name: train, files: [/data/a]}]
  replicaSpecs: {worker: {command: [trainer]}}
)";

/// Everything that a user may say.
constexpr char kRichJob[] = R"(apiVersion: muster/v1
kind: TrainingJob
metadata: {name: flights}
spec:
  snapshots: {directory: s3://bucket/flights, s3: {caFile: /etc/ca/ca.pem}}
  datasets: [{name: train, files: [/data/a]}]
  replicaSpecs: {worker: {command: [trainer]}}
  kubernetes:
    state: {size: 1Gi, storageClass: fast}
    podTemplates:
      all:
        metadata: {labels: {team: ads}, annotations: {a/b: "1"}}
        spec:
          imagePullSecrets: [{name: registry}]
          volumes: [{name: data, persistentVolumeClaim: {claimName: flights, readOnly: true}}]
          containers:
            - name: muster
              envFrom: [{secretRef: {name: s3}}]
              volumeMounts: [{name: data, mountPath: /data, readOnly: true}]
      master: {spec: {nodeSelector: {disk: ssd}}}
      worker:
        spec:
          schedulerName: volcano
          tolerations: [{key: nvidia.com/gpu, operator: Exists}]
          affinity:
            podAntiAffinity:
              preferredDuringSchedulingIgnoredDuringExecution:
                - weight: 1
                  podAffinityTerm:
                    topologyKey: kubernetes.io/hostname
                    labelSelector: {matchLabels: {muster/role: worker}}
          containers:
            - name: muster
              imagePullPolicy: IfNotPresent
              resources: {limits: {nvidia.com/gpu: 1}}
          initContainers:
            - name: fetch
              image: test
              securityContext:
                {runAsUser: 7, allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
)";

class ManifestsLiveTest : public testing::LiveTest {
 protected:
  ManifestJob Job(const std::string& text) const {
    return ReadManifestJob(text, "job.yaml", {.ns = ns_, .image = "test"}).value();
  }
  /// kubectl with `words` and the objects as they are printed; unknown fields are errors.
  std::string Apply(const std::string& words, const std::vector<json>& objects) const {
    const std::string file = folder_.File("objects.yaml");
    EXPECT_THAT(WriteFileAtomically(file, YamlOfAll(objects)), testing::IsOk());
    return Kubectl(words + " --validate=strict -f " + file);
  }
  std::vector<json> Objects(const std::string& text) const {
    const ManifestJob job = Job(text);
    return ObjectsOf(job.spec, job.options);
  }
  /// A pod of each template, as the scaler and the Job make them.
  std::vector<json> Pods(const std::string& text) const {
    const ManifestJob job = Job(text);
    std::vector<json> pods;
    json templates = PodTemplatesOf(job.spec, job.options);
    templates["master"] = MasterTemplateOf(job.spec, job.options);
    for (const auto& [role, pod_template] : templates.items()) {
      json pod = pod_template;
      pod["apiVersion"] = "v1";
      pod["kind"] = "Pod";
      pod["metadata"]["name"] = "flights-" + role + "-0-1";
      pod["metadata"]["namespace"] = ns_;
      pods.push_back(std::move(pod));
    }
    return pods;
  }

  const testing::TempDir folder_;
};

TEST_F(ManifestsLiveTest, TheApiServerTakesEveryObject) {
  // The strictest profile of Kubernetes: it refuses pods that may do more than they need.
  Kubectl("label namespace " + ns_ + " pod-security.kubernetes.io/enforce=restricted");
  Apply("apply", {Objects(kPlainJob).front()});  // the account, which pods must have
  for (const char* text : {kRichJob, kPlainJob}) {
    Apply("apply --dry-run=server", Objects(text));
    Apply("create --dry-run=server", Pods(text));
  }
  const ManifestJob job = Job(kPlainJob);
  JobSecrets secrets{.files = {{"ca.key", "a"}, {"ca.crt", "b"}}, .token = "c", .job_id = "d"};
  Apply("create", SecretsOf(job.spec, job.options, secrets));
  Apply("apply", Objects(kPlainJob));
  // Applied again, nothing changes; nor as a base for Kustomize.
  EXPECT_THAT(Apply("apply", Objects(kPlainJob)), Not(HasSubstr("configured")));
  for (const ManifestFile& file : KustomizeBase(Objects(kPlainJob))) {
    ASSERT_THAT(WriteFileAtomically(folder_.File(file.name), file.text), testing::IsOk());
  }
  EXPECT_THAT(Kubectl("apply -k " + folder_.path()), Not(HasSubstr("configured")));
}

TEST_F(ManifestsLiveTest, TheRoleAllowsWhatTheScalerNeedsAndNothingElse) {
  Apply("apply", Objects(kPlainJob));
  ClusterAccess access = testing::AdminAccess();
  access.client_certificate = {};
  access.client_key = {};
  access.token = Kubectl("create token flights-muster -n " + ns_);
  while (access.token.ends_with('\n')) access.token.pop_back();
  testing::OtherClient scaler(access, &clock_);
  const TimePoint end = clock_.Now() + testing::kClusterPatience;
  // The API server learns of a Role a little later.
  while (!*scaler.client.MayI("list", Resource::kPods, "", ns_)) ASSERT_LT(clock_.Now(), end);
  std::string allowed;
  for (const Resource resource :
       {Resource::kPods, Resource::kJobs, Resource::kServices, Resource::kConfigMaps,
        Resource::kSecrets, Resource::kPersistentVolumeClaims, Resource::kEvents}) {
    for (const char* below : {"", "log", "resize", "exec", "portforward", "eviction", "status"}) {
      if (*below != 0 && resource != Resource::kPods) continue;
      for (const char* verb :
           {"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}) {
        const auto may = scaler.client.MayI(verb, resource, below, ns_);
        ASSERT_THAT(may.status(), testing::IsOk());
        if (*may) allowed += fmt::format("{} {}/{}\n", verb, PluralOf(resource), below);
      }
    }
    EXPECT_EQ(*scaler.client.MayI("get", resource, "", "default"), false) << PluralOf(resource);
  }
  EXPECT_EQ(allowed,
            "get pods/\nlist pods/\nwatch pods/\ncreate pods/\ndelete pods/\nget pods/log\n"
            "patch pods/resize\n");
}

/// The whole list of rights, beside those of everybody.
TEST_F(ManifestsLiveTest, TheRoleAddsThreeLinesToTheRightsOfEverybody) {
  Apply("apply", Objects(kPlainJob));
  const auto rights = [this](const std::string& account) {
    return Kubectl(
        fmt::format("auth can-i --list --no-headers -n {} --as=system:serviceaccount:{}:{}", ns_,
                    ns_, account));
  };
  const auto lines = [](const std::string& text) { return std::ranges::count(text, '\n'); };
  const TimePoint end = clock_.Now() + testing::kClusterPatience;
  while (lines(rights("flights-muster")) != lines(rights("default")) + 3) {
    ASSERT_LT(clock_.Now(), end) << rights("flights-muster");
  }
}

/// Says what a process of this pod is and has.
constexpr char kLook[] = R"sh(
id -u; id -g
stat -L -c '%a %u %g' /etc/muster/tls/ca.crt; cat /etc/muster/tls/*.key
for folder in /tmp /run/muster /var/lib/muster /var/lib/muster-snapshots /etc/muster/job /opt; do
  if touch $folder/a 2>/dev/null; then echo "writes $folder"; fi
done
head -c 21 /etc/muster/job/job.yaml; echo
echo "$MUSTER_JOB_NAME $MUSTER_NAMESPACE $MUSTER_RUN_ID $MUSTER_JOB_ID"
if [ -n "$MUSTER_POD_IP" ] && [ -n "$MUSTER_HOST" ]; then echo "knows where it is"; fi
if [ -e /etc/muster/token/token ]; then echo "has the token $(cat /etc/muster/token/token)"; fi
if grep -q kubernetes.io/serviceaccount /proc/self/mountinfo; then echo "may ask the API server"; fi
)sh";

TEST_F(ManifestsLiveTest, PodsFindWhatTheyNeedAndNoMore) {
  const ManifestJob job = Job(kPlainJob);
  JobSecrets secrets{.files = {{"ca.crt", "ca"}, {"ca.key", "-"}}, .token = "t", .job_id = "id7"};
  for (const char* role : {"master", "ps", "scaler", "worker", "operator"}) {
    secrets.files[std::string(role) + ".crt"] = "crt";
    secrets.files[std::string(role) + ".key"] = std::string(role) + "\n";
  }
  Apply("create", SecretsOf(job.spec, job.options, secrets));
  std::vector<json> objects = Objects(kPlainJob);
  objects.pop_back();  // the Job: its pod is made here
  Apply("apply", objects);
  const std::string begin = "10001\n10001\n440 0 10001\n";
  const std::string words =
      "apiVersion: muster/v1\nflights " + ns_ + " run7 id7\nknows where it is\n";
  const std::map<std::string, std::string> expected = {
      {"worker", begin + "worker\nwrites /tmp\nwrites /run/muster\n" + words},
      {"ps",
       begin + "ps\nwrites /tmp\nwrites /run/muster\nwrites /var/lib/muster-snapshots\n" + words},
      {"master", begin +
                     "master\noperator\nscaler\nwrites /tmp\nwrites /run/muster\nwrites "
                     "/var/lib/muster\nwrites /var/lib/muster-snapshots\n" +
                     words + "has the token t\nmay ask the API server\n"}};
  for (json& pod : Pods(kPlainJob)) {
    const std::string role = pod["metadata"]["labels"]["muster/role"].get<std::string>();
    pod["metadata"]["labels"]["muster/run"] = "run7";
    pod["metadata"]["labels"]["batch.kubernetes.io/controller-uid"] = "run7";
    pod["spec"]["containers"][0]["command"] = {"sh", "-c", kLook};
    const std::string name = Create(pod).at("metadata").at("name").get<std::string>();
    WaitForPod(name, [](const json& seen) {
      const std::string phase = TextAt(seen, {"status", "phase"});
      return phase == "Succeeded" || phase == "Failed";
    });
    const auto said = client_->Logs(ns_, name, {});
    ASSERT_THAT(said, testing::IsOk());
    EXPECT_EQ(*said, expected.at(role)) << role;
  }
}

/// The Job with a master that ends with `code`, and without volumes, which the cluster lacks.
json JobEnding(std::vector<json> objects, int code) {
  json job = objects.back();
  json& pod = job["spec"]["template"]["spec"];
  pod["volumes"] = json::array();
  json& container = pod["containers"][0];
  container["volumeMounts"] = json::array();
  container["env"] = json::array();
  container["command"] = {"sh", "-c", fmt::format("exit {}", code)};
  return job;
}

TEST_F(ManifestsLiveTest, AMasterThatSaysThatTheRunIsOverIsNotStartedAgain) {
  Apply("apply", Objects(kPlainJob));
  Kubectl("delete job flights --wait -n " + ns_);
  Apply("create", {JobEnding(Objects(kPlainJob), 2)});
  Kubectl("wait job/flights --for=condition=Failed --timeout=90s -n " + ns_);
  const auto job =
      client_->Get({.resource = Resource::kJobs, .ns = ns_, .name = "flights", .subresource = ""});
  ASSERT_THAT(job.status(), testing::IsOk());
  EXPECT_THAT(job->at("status").at("conditions").dump(), HasSubstr("PodFailurePolicy"));
  EXPECT_EQ(job->at("status").at("failed"), 1);
}

TEST_F(ManifestsLiveTest, AMasterThatCrashesIsStartedAgain) {
  Apply("apply", Objects(kPlainJob));
  Kubectl("delete job flights --wait -n " + ns_);
  Apply("create", {JobEnding(Objects(kPlainJob), 137)});
  Kubectl("wait job/flights --for=jsonpath={.status.failed}=2 --timeout=90s -n " + ns_);
}

}  // namespace
}  // namespace muster::kubernetes
