#include "kubernetes/manifests/pod_template.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "job/in_cluster.h"
#include "kubernetes/manifests/merge.h"
#include "kubernetes/model/labels.h"
#include "security/identity.h"

namespace muster::kubernetes {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;

/// The kubelet gives the files of a Secret to root and to the pod's group, so keys need mode 0440.
/// security/credentials.h accepts that only if root owns them.
constexpr int kSecretMode = 0440;

/// After its drain, a process that was asked to end still writes its exit note.
constexpr milliseconds kAfterDrain{10'000};

int64_t WholeSeconds(milliseconds time) {
  return std::chrono::ceil<std::chrono::seconds>(time).count();
}

json SecurityOfPod() {
  return {{"runAsNonRoot", true},
          {"runAsUser", kPodUser},
          {"runAsGroup", kPodUser},
          {"fsGroup", kPodUser},
          // Otherwise, every mount of a large volume visits all its files.
          {"fsGroupChangePolicy", "OnRootMismatch"},
          {"seccompProfile", {{"type", "RuntimeDefault"}}}};
}

json SecurityOfContainer() {
  return {{"allowPrivilegeEscalation", false},
          {"readOnlyRootFilesystem", true},
          {"capabilities", {{"drop", json::array({"ALL"})}}}};
}

json FieldVariable(const std::string& name, const std::string& field) {
  return {{"name", name}, {"valueFrom", {{"fieldRef", {{"fieldPath", field}}}}}};
}

std::string LabelField(const std::string& label) {
  return fmt::format("metadata.labels['{}']", label);
}

/// `run_label` is the label of the pod that contains the UID of the Job.
json VariablesOf(const InClusterNames& names, const std::string& run_label) {
  return json::array(
      {{{"name", "MUSTER_JOB_NAME"}, {"value", names.job}},
       FieldVariable("MUSTER_NAMESPACE", "metadata.namespace"),
       FieldVariable("MUSTER_RUN_ID", LabelField(run_label)),
       FieldVariable(kPodAddressVariable, "status.podIP"),
       FieldVariable(kPodMachineVariable, "spec.nodeName"),
       {{"name", "MUSTER_JOB_ID"},
        {"valueFrom", {{"secretKeyRef", {{"name", names.muster}, {"key", "job-id"}}}}}},
       {{"name", "HOME"}, {"value", "/tmp"}}});
}

struct Mount {
  std::string name;
  std::string path;
  json source;  // {"emptyDir": {}}
  bool read_only = false;
};

Mount SecretFiles(const InClusterNames& names, const std::string& name, const std::string& path,
                  const std::vector<std::string>& files) {
  json items = json::array();
  for (const std::string& file : files) items.push_back({{"key", file}, {"path", file}});
  return {.name = name,
          .path = path,
          .source = {{"secret",
                      {{"secretName", names.muster},
                       {"items", std::move(items)},
                       {"defaultMode", kSecretMode}}}},
          .read_only = true};
}

Mount ClaimAt(const std::string& name, const std::string& path, const std::string& claim) {
  return {
      .name = name, .path = path, .source = {{"persistentVolumeClaim", {{"claimName", claim}}}}};
}

/// The mounts of every pod: the job file, the certificates of `roles`, and places to write to.
std::vector<Mount> CommonMounts(const InClusterNames& names, const std::vector<Role>& roles) {
  std::vector<std::string> files = {"ca.crt"};
  for (const Role role : roles) {
    files.push_back(fmt::format("{}.crt", RoleWord(role)));
    files.push_back(fmt::format("{}.key", RoleWord(role)));
  }
  const std::string job_file = kInClusterJobFile;
  return {{.name = "muster-job",
           .path = job_file.substr(0, job_file.rfind('/')),
           .source = {{"configMap", {{"name", names.muster}}}},
           .read_only = true},
          SecretFiles(names, "muster-tls", kInClusterCertificates, files),
          {.name = "run", .path = "/run/muster", .source = {{"emptyDir", json::object()}}},
          {.name = "tmp", .path = "/tmp", .source = {{"emptyDir", json::object()}}}};
}

Mount Snapshots(const JobSpec& spec, const InClusterNames& names) {
  const std::string& claim = spec.kubernetes.snapshots.claim;
  return ClaimAt("muster-snapshots", kInClusterSnapshots,
                 claim.empty() ? names.snapshots_claim : claim);
}

struct Process {
  std::string role;  // "master", "ps", "worker"
  json command;
  json environment;
  std::vector<Mount> mounts;
  milliseconds grace{0};  // between SIGTERM and SIGKILL
};

json TemplateOf(const JobSpec& spec, const ManifestOptions& options, const Process& process) {
  json mounts = json::array();
  json volumes = json::array();
  for (const Mount& mount : process.mounts) {
    json at = {{"name", mount.name}, {"mountPath", mount.path}};
    if (mount.read_only) at["readOnly"] = true;
    mounts.push_back(std::move(at));
    json volume = mount.source;
    volume["name"] = mount.name;
    volumes.push_back(std::move(volume));
  }
  const json container = {{"name", "muster"},
                          {"image", options.image},
                          {"command", process.command},
                          {"env", process.environment},
                          {"securityContext", SecurityOfContainer()},
                          {"volumeMounts", std::move(mounts)}};
  return {{"metadata",
           {{"labels",
             {{"app.kubernetes.io/name", "muster"},
              {"app.kubernetes.io/instance", spec.name},
              {kJobLabel, spec.name},
              {kRoleLabel, process.role}}}}},
          {"spec",
           {{"restartPolicy", "Never"},
            // Otherwise, Kubernetes sets variables that begin with MUSTER_ if a Service is called
            // muster.
            {"enableServiceLinks", false},
            {"automountServiceAccountToken", false},
            {"terminationGracePeriodSeconds", WholeSeconds(process.grace)},
            {"securityContext", SecurityOfPod()},
            {"containers", json::array({container})},
            {"volumes", std::move(volumes)}}}};
}

json WithFragments(json base, const std::string& all, const std::string& role) {
  for (const std::string* fragment : {&all, &role}) {
    if (!fragment->empty()) MergePodTemplate(json::parse(*fragment), &base);
  }
  return base;
}

/// CPU in thousandths, rounded up, and memory in bytes.
json Quantities(const ResourceSpec& spec) {
  json values = json::object();
  if (spec.cpu) values["cpu"] = fmt::format("{:.0f}m", std::ceil(*spec.cpu * 1000));
  if (spec.memory_bytes) values["memory"] = std::to_string(*spec.memory_bytes);
  return values;
}

json NodeTemplateOf(const JobSpec& spec, const ManifestOptions& options, Role role) {
  const InClusterNames names(spec.name);
  const bool server = role == Role::kServer;
  Process process{.role = std::string(RoleWord(role)),
                  .command = json::array({"muster", "node", "--role", RoleWord(role)}),
                  .environment = VariablesOf(names, kRunLabel),
                  .mounts = CommonMounts(names, {role}),
                  .grace = spec.drain_timeout + kAfterDrain};
  if (server) {
    process.grace += spec.drain_timeout;  // once for shards in progress, and once for snapshots
    if (HasSnapshotVolume(spec)) process.mounts.push_back(Snapshots(spec, names));
  }
  json base = TemplateOf(spec, options, process);
  // The scaler replaces the limits by those of each start, and keeps the ratios of requests to
  // limits.
  const ReplicaSpec& replicas = server ? spec.ps : spec.worker;
  json& container = base["spec"]["containers"][0];
  for (const auto& [which, values] : {std::pair("requests", Quantities(replicas.requests)),
                                      std::pair("limits", Quantities(replicas.limits))}) {
    if (!values.empty()) container["resources"][which] = values;
  }
  const KubernetesSpec::PodTemplates& templates = spec.kubernetes.pod_templates;
  return WithFragments(std::move(base), templates.all, server ? templates.ps : templates.worker);
}

/// After this time, Kubernetes gives up the pod of a machine that does not answer. Its default is
/// 300 s, which is too long, because the job cannot restart anything without master and scaler.
constexpr int kUnreachableSeconds = 30;

json MasterTolerations() {
  json tolerations = json::array();
  for (const std::string_view taint : {"not-ready", "unreachable"}) {
    tolerations.push_back({{"key", fmt::format("node.kubernetes.io/{}", taint)},
                           {"operator", "Exists"},
                           {"effect", "NoExecute"},
                           {"tolerationSeconds", kUnreachableSeconds}});
  }
  return tolerations;
}

}  // namespace

bool HasSnapshotVolume(const JobSpec& spec) {
  JobSpec in_pods = spec;
  PutInCluster("", "", &in_pods);
  return in_pods.snapshot_directory.starts_with(std::string(kInClusterSnapshots) + "/");
}

json PodTemplatesOf(const JobSpec& spec, const ManifestOptions& options) {
  return {{"worker", NodeTemplateOf(spec, options, Role::kWorker)},
          {"ps", NodeTemplateOf(spec, options, Role::kServer)}};
}

json MasterTemplateOf(const JobSpec& spec, const ManifestOptions& options) {
  const InClusterNames names(spec.name);
  // The roles of master and scaler, and of the operator for `muster run` itself.
  std::vector<Mount> mounts = CommonMounts(names, {Role::kMaster, Role::kScaler, Role::kOperator});
  const std::string token = kInClusterTokenFile;
  mounts.push_back(
      SecretFiles(names, "muster-token", token.substr(0, token.rfind('/')), {"token"}));
  const std::string& claim = spec.kubernetes.state.claim;
  mounts.push_back(
      ClaimAt("muster-state", kInClusterState, claim.empty() ? names.state_claim : claim));
  if (HasSnapshotVolume(spec)) mounts.push_back(Snapshots(spec, names));
  // The master needs little time to end cleanly, and workers and servers live on.
  constexpr milliseconds kGrace{30'000};
  json base =
      TemplateOf(spec, options,
                 {.role = std::string(RoleWord(Role::kMaster)),
                  .command = json::array({"muster", "run", kInClusterJobFile, "--in-cluster"}),
                  // Kubernetes puts this label on the pods of a Job.
                  .environment = VariablesOf(names, "batch.kubernetes.io/controller-uid"),
                  .mounts = std::move(mounts),
                  .grace = kGrace});
  json& pod = base["spec"];
  pod["serviceAccountName"] = names.muster;
  pod["containers"][0]["env"].push_back(
      {{"name", kDigestVariable}, {"value", FileDigestOf(options)}});
  pod["automountServiceAccountToken"] = true;
  pod["tolerations"] = MasterTolerations();
  json& container = pod["containers"][0];
  container["resources"] = {{"requests", {{"cpu", "500m"}, {"memory", "1Gi"}}},
                            {"limits", {{"memory", "2Gi"}}}};
  container["ports"] = json::array({{{"name", "master"}, {"containerPort", kInClusterMasterPort}},
                                    {{"name", "rest"}, {"containerPort", kInClusterRestPort}}});
  const KubernetesSpec::PodTemplates& templates = spec.kubernetes.pod_templates;
  return WithFragments(std::move(base), templates.all, templates.master);
}

}  // namespace muster::kubernetes
