#include "cli/cluster/object_keeper.h"

#include <fmt/format.h>

#include <utility>

#include "base/status.h"
#include "cli/cluster/job_watch.h"
#include "cli/cluster/make_objects.h"
#include "job/in_cluster.h"
#include "kubernetes/model/api_error.h"
#include "kubernetes/model/json_access.h"
#include "kubernetes/model/resource.h"

namespace muster::cluster {
namespace {

using kubernetes::ApiErrorKind;
using kubernetes::Resource;
using kubernetes::TextAt;
using nlohmann::json;

std::vector<json> Kept(Cluster* cluster, const std::string& job, std::vector<json> objects) {
  std::erase_if(objects, [](const json& object) {
    const std::string kind = TextAt(object, {"kind"});
    return kind == "Job" || kind == "PersistentVolumeClaim";
  });
  const InClusterNames names(job);
  for (const std::string& name : {names.muster, names.authority}) {
    absl::StatusOr<json> secret =
        cluster->client().Get({.resource = Resource::kSecrets, .ns = cluster->ns(), .name = name});
    if (!secret.ok()) continue;
    (*secret)["apiVersion"] = "v1";
    (*secret)["kind"] = "Secret";
    objects.push_back(AsNew(*std::move(secret)));
  }
  return objects;
}

}  // namespace

json AsNew(json object) {
  json metadata = json::object();
  for (const char* field : {"name", "namespace", "labels", "annotations"}) {
    const json& value = kubernetes::ValueAt(object, {"metadata", field});
    if (!value.is_null()) metadata[field] = value;
  }
  object["metadata"] = std::move(metadata);
  object.erase("status");
  return object;
}

ObjectKeeper::ObjectKeeper(Cluster* cluster, std::string job, std::vector<json> objects)
    : cluster_(cluster), job_(std::move(job)), kept_(Kept(cluster, job_, std::move(objects))) {}

void ObjectKeeper::OnLook(const JobLook& look) {
  const bool lives = look.stage == JobStage::kWaiting || look.stage == JobStage::kPending ||
                     look.stage == JobStage::kRunning;
  if (!lives) return;
  const TimePoint now = cluster_->clock().Now();
  {
    const MutexLock lock(&mutex_);
    if (looked_at_ && now - *looked_at_ < kInterval) return;
    looked_at_ = now;
  }
  PutBack();
  for (std::string& line : StuckNodes(cluster_, job_)) Say(std::move(line));
}

void ObjectKeeper::PutBack() {
  for (const json& object : kept_) {
    if (!PutBack(object)) return;
  }
}

bool ObjectKeeper::PutBack(const json& object) {
  const std::string kind = TextAt(object, {"kind"});
  const std::string name = kubernetes::IdentityOf(object).name;
  const std::optional<Resource> resource = kubernetes::ResourceOfKind(kind);
  if (!resource) return true;
  const absl::StatusOr<json> present =
      cluster_->client().Get({.resource = *resource, .ns = cluster_->ns(), .name = name});
  const absl::Status& there = present.status();
  const bool is_of_other_file =
      present.ok() && TextAt(*present, {"data", "digest"}) != TextAt(object, {"data", "digest"});
  if (absl::IsUnavailable(there) || absl::IsDeadlineExceeded(there)) return false;
  // If the API server refuses to show the object, that does not mean that it is gone.
  const bool is_gone = !there.ok() && kubernetes::KindOf(there) == ApiErrorKind::kNotFound;
  if (!is_gone && !is_of_other_file) return true;
  // A Secret is only created, so that it never replaces somebody's new keys.
  const absl::Status made =
      *resource == Resource::kSecrets
          ? cluster_->client().Create(*resource, cluster_->ns(), object).status()
          : ApplyObjects(cluster_, {object});
  if (made.ok()) {
    const MutexLock lock(&mutex_);
    const std::string_view what =
        is_gone ? "was not there; it is made again" : "was of another job file; it is put back";
    notes_.push_back(fmt::format("the {} {} {}", kind, name, what));
  } else if (kubernetes::KindOf(made) != ApiErrorKind::kAlreadyExists) {
    Say(fmt::format("the {} {} is not there, and cannot be made again: {}", kind, name,
                    Message(made)));
  }
  return true;
}

void ObjectKeeper::Say(std::string note) {
  const MutexLock lock(&mutex_);
  // The same note is given only once.
  if (said_.insert(note).second) notes_.push_back(std::move(note));
}

std::vector<std::string> ObjectKeeper::TakeNotes() {
  const MutexLock lock(&mutex_);
  return std::exchange(notes_, {});
}

}  // namespace muster::cluster
