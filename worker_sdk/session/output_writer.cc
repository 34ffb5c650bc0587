#include "worker_sdk/session/output_writer.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "base/status.h"

namespace muster::internal {
namespace {

constexpr uint64_t kIdBytesMax = 4'096;

/// Another writer that ends at the same moment takes away what this one was about to publish.
absl::Status BusyIfNotFound(absl::Status status) {
  return absl::IsNotFound(status) ? absl::UnavailableError(std::string(Message(status))) : status;
}

/// An object that a writer of this job may have made, in a folder that may have others. The names
/// of shards' objects are those of ShardOutput::NameOf: "DATASET-00000012.npy".
bool IsOurs(std::string_view name) {
  if (name == OutputWriter::kOwner) return true;
  const std::string_view stem = name.substr(0, name.rfind('.'));
  const size_t dash = stem.rfind('-');
  if (stem.size() == name.size() || dash == std::string_view::npos) return false;
  const std::string_view number = stem.substr(dash + 1);
  return number.size() >= 8 && number.find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace

absl::Status OutputWriter::Claim(ObjectStore* store) const {
  const std::string name(kOwner);
  const absl::Status put = store->PutNew(name, job_id_);
  if (put.ok() || !absl::IsAlreadyExists(put)) return BusyIfNotFound(put);
  MUSTER_ASSIGN_OR_RETURN(const std::string owner, store->Get(name, kIdBytesMax));
  if (owner == job_id_) return absl::OkStatus();
  return absl::FailedPreconditionError(
      fmt::format("{} has the outputs of another job ({} says so): give this job another `output`, "
                  "or remove all of them",
                  store->place(), store->Shown(name)));
}

absl::StatusOr<ObjectStore*> OutputWriter::Open(const std::string& place) {
  {
    MutexLock lock(&mutex_);
    const auto known = stores_.find(place);
    if (known != stores_.end()) return known->second.get();
  }
  MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<ObjectStore> store, OpenStore(place));
  MUSTER_RETURN_IF_ERROR(Claim(store.get()));
  MutexLock lock(&mutex_);
  return stores_.try_emplace(place, std::move(store)).first->second.get();
}

absl::Status OutputWriter::Write(const std::string& place, const std::string& name,
                                 std::string_view bytes) {
  MUSTER_ASSIGN_OR_RETURN(ObjectStore * store, Open(place));
  const absl::Status put = store->PutNew(name, bytes);  // Rule 13.3.
  return absl::IsAlreadyExists(put) ? absl::OkStatus() : BusyIfNotFound(put);
}

void OutputWriter::RemoveUnfinished() {
  std::vector<ObjectStore*> stores;
  {
    MutexLock lock(&mutex_);
    for (const auto& [place, store] : stores_) stores.push_back(store.get());
  }
  for (ObjectStore* const store : stores) (void)store->DeleteUnfinished(IsOurs);
}

}  // namespace muster::internal
