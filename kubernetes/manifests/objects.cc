#include "kubernetes/manifests/objects.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <limits>
#include <utility>

#include "base/digest/sha256.h"
#include "base/status.h"
#include "base/text.h"
#include "job/file/job_file.h"
#include "job/file/name_rules.h"
#include "job/in_cluster.h"
#include "kubernetes/manifests/pod_template.h"
#include "kubernetes/model/job_rights.h"
#include "kubernetes/model/json_access.h"
#include "kubernetes/model/labels.h"

namespace muster::kubernetes {
namespace {

using nlohmann::json;

std::string FolderOfJobFile() {
  const std::string file = kInClusterJobFile;
  return file.substr(0, file.rfind('/'));
}

json Object(const std::string& api_version, const std::string& kind, const std::string& name,
            const JobSpec& spec, const ManifestOptions& options) {
  return {{"apiVersion", api_version},
          {"kind", kind},
          {"metadata",
           {{"name", name},
            {"namespace", options.ns},
            {"labels",
             {{"app.kubernetes.io/name", "muster"},
              {"app.kubernetes.io/instance", spec.name},
              {kJobLabel, spec.name}}}}}};
}

json RoleOf(const JobSpec& spec, const ManifestOptions& options, const InClusterNames& names) {
  std::vector<Right> rights = RightsOfJob();
  if (options.resizes_in_place) rights.push_back(kRightToResize);
  json role = Object("rbac.authorization.k8s.io/v1", "Role", names.muster, spec, options);
  json& rules = role["rules"] = json::array();
  for (const Right& right : rights) {
    const std::string resource = ResourceTextOf(right);
    if (rules.empty() || rules.back()["resources"][0] != resource) {
      rules.push_back({{"apiGroups", json::array({ApiGroupOf(right.resource)})},
                       {"resources", json::array({resource})},
                       {"verbs", json::array()}});
    }
    rules.back()["verbs"].push_back(right.verb);
  }
  return role;
}

json BindingOf(const JobSpec& spec, const ManifestOptions& options, const InClusterNames& names,
               const std::string& account) {
  json binding = Object("rbac.authorization.k8s.io/v1", "RoleBinding", names.muster, spec, options);
  binding["roleRef"] = {
      {"apiGroup", "rbac.authorization.k8s.io"}, {"kind", "Role"}, {"name", names.muster}};
  binding["subjects"] =
      json::array({{{"kind", "ServiceAccount"}, {"name", account}, {"namespace", options.ns}}});
  return binding;
}

std::string PodText(const JobSpec& spec, const ManifestOptions& options) {
  return PodTemplatesOf(spec, options).dump(2, ' ', false, json::error_handler_t::replace);
}

json ConfigMapOf(const JobSpec& spec, const ManifestOptions& options, const InClusterNames& names) {
  json map = Object("v1", "ConfigMap", names.muster, spec, options);
  map["data"] = {{"job.yaml", options.job_file},
                 {"pods.json", PodText(spec, options) + "\n"},
                 {"digest", FileDigestOf(options)}};
  return map;
}

json ClaimOf(const JobSpec& spec, const ManifestOptions& options, const std::string& name,
             const std::string& access, const KubernetesSpec::Volume& volume) {
  json claim = Object("v1", "PersistentVolumeClaim", name, spec, options);
  claim["spec"] = {
      {"accessModes", json::array({access})},
      {"resources", {{"requests", {{"storage", fmt::format("{}", volume.size_bytes)}}}}}};
  if (!volume.storage_class.empty()) claim["spec"]["storageClassName"] = volume.storage_class;
  return claim;
}

json ServiceOf(const JobSpec& spec, const ManifestOptions& options, const InClusterNames& names) {
  json service = Object("v1", "Service", names.master_service, spec, options);
  const auto port = [](const std::string& name, uint16_t number) -> json {
    return {{"name", name}, {"port", number}, {"targetPort", number}, {"protocol", "TCP"}};
  };
  service["spec"] = {{"clusterIP", "None"},
                     // Workers and servers must reach a master that has just started.
                     {"publishNotReadyAddresses", true},
                     {"selector", {{kJobLabel, spec.name}, {kRoleLabel, "master"}}},
                     {"ports", json::array({port("master", kInClusterMasterPort),
                                            port("rest", kInClusterRestPort)})}};
  return service;
}

/// With these exit codes of `muster run` (docs/cli.md), the run is over: the job failed, the input
/// is bad, it was drained or cancelled, or snapshots cannot be read. A new pod would only report
/// the same, or undo what somebody ordered. Code 0 is success, and any other code is an accident.
const std::vector<int>& FinalExitCodes() {
  static const std::vector<int> codes = {1, 2, 3, 4, 7};
  return codes;
}

json JobOf(const JobSpec& spec, const ManifestOptions& options, const InClusterNames& names,
           json pod_template) {
  json job = Object("batch/v1", "Job", names.job, spec, options);
  // Queues such as Kueue read labels and annotations of the Job itself.
  for (const char* part : {"labels", "annotations"}) {
    const json texts = pod_template["metadata"].value(part, json::object());
    for (const auto& [name, text] : texts.items()) {
      if (name != kRoleLabel) job["metadata"][part][name] = text;
    }
  }
  job["metadata"]["annotations"][kFileAnnotation] = FileDigestOf(options);
  const json ignored = {
      {"action", "Ignore"},
      {"onPodConditions", json::array({{{"type", "DisruptionTarget"}, {"status", "True"}}})}};
  const json final = {
      {"action", "FailJob"},
      {"onExitCodes",
       {{"containerName", "muster"}, {"operator", "In"}, {"values", FinalExitCodes()}}}};
  job["spec"] = {{"completions", 1},
                 {"parallelism", 1},
                 {"backoffLimit", std::numeric_limits<int32_t>::max()},
                 // So there are never two masters at once. It is also the only value that
                 // podFailurePolicy allows.
                 {"podReplacementPolicy", "Failed"},
                 {"podFailurePolicy", {{"rules", json::array({ignored, final})}}},
                 {"template", std::move(pod_template)}};
  return job;
}

/// Adds an error for each path that is relative to the job file.
void CheckPaths(const JobSpec& spec, std::vector<std::string>* errors) {
  const std::string folder = FolderOfJobFile() + "/";
  const auto check = [&](const std::string& field, const std::string& path) {
    if (!path.starts_with(folder)) return;
    errors->push_back(fmt::format(
        "{}: '{}' is relative to the job file; in pods, the job file is alone in its folder, so "
        "name an absolute path, and mount what it needs with spec.kubernetes.podTemplates",
        field, path.substr(folder.size())));
  };
  for (size_t i = 0; i < spec.datasets.size(); ++i) {
    const auto* const lines = std::get_if<LinesSpec>(&spec.datasets[i].source);
    if (lines == nullptr) continue;
    for (const std::string& file : lines->files) {
      check(fmt::format("spec.datasets[{}].files", i), file);
    }
  }
  check("spec.replicaSpecs.worker.command", spec.worker.command.front());
  check("spec.snapshots.s3.credentialsFile", spec.s3.credentials_file);
  check("spec.snapshots.s3.caFile", spec.s3.ca_file);
}

std::vector<std::string> ErrorsOf(const JobSpec& spec, const ManifestOptions& options) {
  std::vector<std::string> errors;
  // The name of the Service is NAME-master. It has at most 63 bytes, and begins with a letter.
  constexpr size_t kNameBytesMax = 63 - std::string_view("-master").size();
  if (spec.name.size() > kNameBytesMax) {
    errors.push_back(
        fmt::format("metadata.name: '{}' has {} characters; on Kubernetes, at most {} fit, because "
                    "NAME-master names a Service",
                    spec.name, spec.name.size(), kNameBytesMax));
  }
  if (spec.name.front() < 'a' || spec.name.front() > 'z') {
    errors.push_back(
        fmt::format("metadata.name: '{}' must begin with a letter on Kubernetes, because "
                    "NAME-master names a Service",
                    spec.name));
  }
  if (!job_file::IsName(options.ns)) {
    errors.push_back(fmt::format(
        "the namespace '{}' is no name: up to 63 of a-z, 0-9 and -, none at an end; name another "
        "with --namespace",
        Printable(options.ns)));
  }
  if (options.image.empty()) {
    errors.emplace_back("spec.kubernetes.image: is missing; name it there, or with --image");
  }
  CheckPaths(spec, &errors);
  if (!spec.security.certificates.empty()) {
    errors.push_back(
        fmt::format("spec.security.certificates: on Kubernetes, certificates are in the Secret "
                    "{}; put yours there, and remove this field",
                    InClusterNames(spec.name).muster));
  }
  if (spec.security.insecure) {
    errors.emplace_back(
        "spec.security.insecure: on Kubernetes, all connections are TLS; remove this field");
  }
  return errors;
}

}  // namespace

absl::StatusOr<ManifestJob> ReadManifestJob(std::string_view text, const std::string& file_name,
                                            const ManifestFlags& flags) {
  MUSTER_ASSIGN_OR_RETURN(JobSpec spec, ParseJobFile(text, file_name, FolderOfJobFile()));
  ManifestOptions options{.ns = flags.ns,
                          .image = flags.image.empty() ? spec.kubernetes.image : flags.image,
                          .job_file = std::string(text)};
  if (options.ns.empty()) options.ns = spec.kubernetes.ns;
  if (options.ns.empty()) options.ns = "default";
  std::vector<std::string> errors = ErrorsOf(spec, options);
  if (errors.empty()) {
    // The API server accepts objects of a little more than 1 MiB.
    constexpr size_t kConfigBytesMax = 1'000'000;
    const size_t bytes = text.size() + PodText(spec, options).size();
    if (bytes > kConfigBytesMax) {
      errors.push_back(fmt::format(
          "the job file and the templates of its pods have {} bytes; a ConfigMap holds {}", bytes,
          kConfigBytesMax));
    }
  }
  if (!errors.empty()) {
    for (std::string& error : errors) error = fmt::format("{}: {}", file_name, error);
    return absl::InvalidArgumentError(fmt::format("{}", fmt::join(errors, "\n")));
  }
  return ManifestJob{std::move(spec), std::move(options)};
}

std::string FileDigestOf(const ManifestOptions& options) {
  return Sha256Hex(fmt::format("{}\n{}", options.image, options.job_file));
}

std::vector<json> ObjectsOf(const JobSpec& spec, const ManifestOptions& options) {
  const InClusterNames names(spec.name);
  json master = MasterTemplateOf(spec, options);
  // This is Muster's account, or one that the fragment names.
  const std::string account = TextAt(master, {"spec", "serviceAccountName"});
  std::vector<json> objects;
  if (account == names.muster) {
    objects.push_back(Object("v1", "ServiceAccount", names.muster, spec, options));
  }
  objects.push_back(RoleOf(spec, options, names));
  objects.push_back(BindingOf(spec, options, names, account));
  objects.push_back(ConfigMapOf(spec, options, names));
  if (spec.kubernetes.state.claim.empty()) {
    objects.push_back(
        ClaimOf(spec, options, names.state_claim, "ReadWriteOnce", spec.kubernetes.state));
  }
  if (HasSnapshotVolume(spec) && spec.kubernetes.snapshots.claim.empty()) {
    objects.push_back(
        ClaimOf(spec, options, names.snapshots_claim, "ReadWriteMany", spec.kubernetes.snapshots));
  }
  objects.push_back(ServiceOf(spec, options, names));
  objects.push_back(JobOf(spec, options, names, std::move(master)));
  return objects;
}

}  // namespace muster::kubernetes
