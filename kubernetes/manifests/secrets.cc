#include <array>
#include <utility>

#include "absl/strings/escaping.h"
#include "base/status.h"
#include "job/in_cluster.h"
#include "kubernetes/manifests/objects.h"
#include "kubernetes/model/json_access.h"
#include "kubernetes/model/labels.h"
#include "security/identity.h"

namespace muster::kubernetes {
namespace {

using nlohmann::json;

constexpr char kAuthorityKey[] = "ca.key";
constexpr char kAuthorityCertificate[] = "ca.crt";
constexpr char kToken[] = "token";
constexpr char kJobId[] = "job-id";

json Secret(const std::string& name, const JobSpec& spec, const ManifestOptions& options,
            const std::map<std::string, std::string>& contents) {
  json data = json::object();
  for (const auto& [key, text] : contents) data[key] = absl::Base64Escape(text);
  return {{"apiVersion", "v1"},
          {"kind", "Secret"},
          {"metadata",
           {{"name", name},
            {"namespace", options.ns},
            {"labels",
             {{"app.kubernetes.io/name", "muster"},
              {"app.kubernetes.io/instance", spec.name},
              {kJobLabel, spec.name}}}}},
          {"type", "Opaque"},
          {"data", std::move(data)}};
}

absl::StatusOr<std::string> TextIn(const json& secret, const std::string& key) {
  const auto unfit = [&](std::string_view what) {
    return absl::FailedPreconditionError(fmt::format("the Secret {} {} {}; {}",
                                                     TextAt(secret, {"metadata", "name"}), what,
                                                     key, AdviceFor(secret)));
  };
  const json::json_pointer place = json::json_pointer("/data") / key;
  if (!secret.contains(place) || !secret.at(place).is_string()) return unfit("lacks the key");
  std::string text;
  if (!absl::Base64Unescape(secret.at(place).get<std::string>(), &text)) {
    return unfit("has no base64 in the key");
  }
  return text;
}

}  // namespace

std::vector<json> SecretsOf(const JobSpec& spec, const ManifestOptions& options,
                            const JobSecrets& secrets) {
  const InClusterNames names(spec.name);
  std::map<std::string, std::string> of_pods = secrets.files;
  of_pods.erase(kAuthorityKey);
  of_pods[kToken] = secrets.token;
  of_pods[kJobId] = secrets.job_id;
  // The id is kept with the authority, too, because the keys of the pods may have to be replaced.
  std::map<std::string, std::string> of_authority = {{kJobId, secrets.job_id}};
  for (const char* file : {kAuthorityKey, kAuthorityCertificate}) {
    const auto found = secrets.files.find(file);
    if (found != secrets.files.end()) of_authority.insert(*found);
  }
  return {Secret(names.muster, spec, options, of_pods),
          Secret(names.authority, spec, options, of_authority)};
}

absl::StatusOr<JobSecrets> SecretsFrom(const json& pods, const json& authority) {
  JobSecrets secrets;
  std::vector<std::string> files = {kAuthorityCertificate};
  for (const Role role : kRoles) {
    for (const char* ending : {".crt", ".key"})
      files.push_back(std::string(RoleWord(role)) + ending);
  }
  for (const std::string& file : files) {
    MUSTER_ASSIGN_OR_RETURN(secrets.files[file], TextIn(pods, file));
  }
  MUSTER_ASSIGN_OR_RETURN(secrets.files[kAuthorityKey], TextIn(authority, kAuthorityKey));
  MUSTER_ASSIGN_OR_RETURN(secrets.token, TextIn(pods, kToken));
  MUSTER_ASSIGN_OR_RETURN(secrets.job_id, TextIn(pods, kJobId));
  return secrets;
}

std::string KeptJobId(const json& authority) {
  return TextIn(authority, kJobId).value_or("");
}

std::string AdviceFor(const json& secret) {
  const std::string job = TextAt(secret, {"metadata", "labels", kJobLabel});
  return fmt::format("delete the Secrets and the claim {}, and the job begins again",
                     InClusterNames(job.empty() ? "NAME" : job).state_claim);
}

}  // namespace muster::kubernetes
