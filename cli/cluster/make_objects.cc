#include "cli/cluster/make_objects.h"

#include <fmt/format.h>

#include <utility>

#include "base/clock.h"
#include "base/status.h"
#include "cli/cluster/job_watch.h"
#include "cli/manifests/job_secrets.h"
#include "job/in_cluster.h"
#include "kubernetes/model/api_error.h"
#include "kubernetes/model/json_access.h"

namespace muster::cluster {
namespace {

using kubernetes::ApiErrorKind;
using kubernetes::ObjectPlace;
using kubernetes::Resource;
using kubernetes::TextAt;
using nlohmann::json;

constexpr std::chrono::milliseconds kGoneInterval{500};
constexpr std::chrono::minutes kGoneMax{5};
/// Another user may just have made one of the two Secrets.
constexpr int kSecretTriesMax = 5;

/// Returns null if the object does not exist.
absl::StatusOr<json> GetIfThere(Cluster* cluster, Resource resource, const std::string& name) {
  absl::StatusOr<json> object =
      cluster->client().Get({.resource = resource, .ns = cluster->ns(), .name = name});
  if (kubernetes::KindOf(object.status()) == ApiErrorKind::kNotFound) return json();
  return object;
}

absl::Status Apply(Cluster* cluster, const json& object) {
  const std::string kind = TextAt(object, {"kind"});
  const std::string name = kubernetes::IdentityOf(object).name;
  const std::optional<Resource> resource = kubernetes::ResourceOfKind(kind);
  if (!resource) return absl::InternalError(fmt::format("no resource of the kind {}", kind));
  return Annotate(cluster->client()
                      .Patch(ObjectPlace{.resource = *resource, .ns = cluster->ns(), .name = name},
                             kubernetes::PatchKind::kApply, object)
                      .status(),
                  fmt::format("{} {}", kind, name));
}

/// Kubernetes allows almost no change of a claim. Its own error quotes a comparison of both, so
/// this adds what to do.
absl::Status OtherClaim(const std::string& ns, const std::string& name, const absl::Status& why) {
  return Annotate(
      why,
      fmt::format("the claim {0} is refused. If it is there already with another storage class or "
                  "a larger size, give it the same in the job file, or delete it with all that it "
                  "holds (`kubectl --namespace {1} delete pvc {0}`)",
                  name, ns));
}

absl::Status RenewSecrets(Cluster* cluster, const kubernetes::ManifestJob& job, const json& pods,
                          const json& authority, const SayFn& say) {
  MUSTER_ASSIGN_OR_RETURN(const kubernetes::JobSecrets present,
                          kubernetes::SecretsFrom(pods, authority));
  const absl::StatusOr<kubernetes::JobSecrets> renewed =
      RenewJobSecrets(present, job.spec.name, job.options.ns, cluster->clock().Wall());
  MUSTER_RETURN_IF_ERROR_PREPEND(renewed.status(),
                                 fmt::format("the Secret {}", kubernetes::IdentityOf(pods).name));
  if (renewed->files == present.files) return absl::OkStatus();
  say("certificates: renewed");
  for (const json& secret : kubernetes::SecretsOf(job.spec, job.options, *renewed)) {
    MUSTER_RETURN_IF_ERROR(Apply(cluster, secret));
  }
  return absl::OkStatus();
}

/// Makes new Secrets. kAlreadyExists means that somebody else was faster, and that the job has
/// their keys. The Secret of the pods decides who was faster. If there is no authority yet, a new
/// one is made before it, so that no job has keys without their authority. If there is one, it is
/// replaced only after the decision.
absl::Status MakeSecrets(Cluster* cluster, const kubernetes::ManifestJob& job,
                         const json& authority_before) {
  MUSTER_ASSIGN_OR_RETURN(const kubernetes::JobSecrets secrets,
                          MakeJobSecrets(job.spec.name, job.options.ns, cluster->clock().Wall(),
                                         kubernetes::KeptJobId(authority_before)));
  const std::vector<json> made = kubernetes::SecretsOf(job.spec, job.options, secrets);
  const json& pods = made.at(0);
  const json& authority = made.at(1);
  const auto create = [&](const json& secret) {
    return cluster->client().Create(Resource::kSecrets, cluster->ns(), secret).status();
  };
  if (authority_before.is_null()) {
    MUSTER_RETURN_IF_ERROR(create(authority));
    return create(pods);
  }
  MUSTER_RETURN_IF_ERROR(create(pods));
  return Apply(cluster, authority);
}

}  // namespace

absl::Status EnsureSecrets(Cluster* cluster, const kubernetes::ManifestJob& job, JobStage stage,
                           const SayFn& say) {
  const InClusterNames names(job.spec.name);
  absl::Status made;
  for (int tries = 0; tries < kSecretTriesMax; ++tries) {
    MUSTER_ASSIGN_OR_RETURN(const json pods, GetIfThere(cluster, Resource::kSecrets, names.muster));
    MUSTER_ASSIGN_OR_RETURN(const json authority,
                            GetIfThere(cluster, Resource::kSecrets, names.authority));
    if (pods.is_object() && authority.is_null()) {
      say(fmt::format("certificates: the Secret {} is not there, so nothing is renewed",
                      names.authority));
      return absl::OkStatus();
    }
    if (pods.is_object()) return RenewSecrets(cluster, job, pods, authority, say);
    if (stage == JobStage::kRunning) {
      return NoSecret(cluster->ns(), job.spec.name);
    }
    made = MakeSecrets(cluster, job, authority);
    if (kubernetes::KindOf(made) != ApiErrorKind::kAlreadyExists) break;
  }
  return Annotate(made, fmt::format("the Secrets of {}", job.spec.name));
}

absl::Status ApplyObjects(Cluster* cluster, const std::vector<json>& objects) {
  for (const json& object : objects) {
    if (TextAt(object, {"kind"}) == "Job") continue;
    const absl::Status applied = Apply(cluster, object);
    const bool is_claim = TextAt(object, {"kind"}) == "PersistentVolumeClaim";
    if (is_claim && kubernetes::KindOf(applied) == ApiErrorKind::kInvalid) {
      return OtherClaim(cluster->ns(), kubernetes::IdentityOf(object).name, applied);
    }
    MUSTER_RETURN_IF_ERROR(applied);
  }
  return absl::OkStatus();
}

absl::Status DeleteEndedJob(Cluster* cluster, const std::string& job, const JobLook& look,
                            const SayFn& say) {
  if (look.stage == JobStage::kEnded) {
    say(fmt::format("the job {} has {}; it is made again, and continues from its state", job,
                    Describe(look)));
    const absl::Status status =
        cluster->client()
            .Delete({.resource = Resource::kJobs, .ns = cluster->ns(), .name = job},
                    {.uid = look.uid, .foreground = true})
            .status();
    if (!status.ok() && kubernetes::KindOf(status) != ApiErrorKind::kNotFound) return status;
  }
  const Clock& clock = cluster->clock();
  const TimePoint end = clock.Now() + kGoneMax;
  bool has_said = false;
  while (clock.Now() < end) {
    MUSTER_ASSIGN_OR_RETURN(const json present, GetIfThere(cluster, Resource::kJobs, job));
    if (present.is_null() || kubernetes::IdentityOf(present).uid != look.uid) {
      return absl::OkStatus();
    }
    if (!std::exchange(has_said, true)) say("waiting until the old Job and its pods are gone");
    SleepFor(kGoneInterval);
  }
  return absl::DeadlineExceededError(fmt::format(
      "the old Job {} is still there after {} minutes; `kubectl --namespace {} describe "
      "job {}` shows what holds it",
      job, kGoneMax.count(), cluster->ns(), job));
}

absl::StatusOr<std::string> CreateJob(Cluster* cluster, const std::vector<json>& objects) {
  for (const json& object : objects) {
    if (TextAt(object, {"kind"}) != "Job") continue;
    MUSTER_ASSIGN_OR_RETURN(const json made,
                            cluster->client().Create(Resource::kJobs, cluster->ns(), object));
    return kubernetes::IdentityOf(made).uid;
  }
  return absl::InternalError("the manifests have no Job");
}

}  // namespace muster::cluster
