#include "master/service/snapshot_files.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <string_view>

#include "base/failpoint.h"
#include "base/log.h"
#include "base/status.h"
#include "master/core/orphans.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

bool StaysInside(const std::string& name) {
  const fs::path path(name);
  return !name.empty() && path.is_relative() &&
         std::none_of(path.begin(), path.end(), [](const fs::path& part) { return part == ".."; });
}

void Delete(ObjectStore* store, const std::string& name) {
  const absl::Status status = store->Delete(name);
  if (!status.ok()) Log(LogLevel::kWarning, "an unused snapshot file stays: {}", Message(status));
}

bool IsPartitionFolder(const std::string& name) {
  return name.size() > 1 && name[0] == 'p' &&
         std::all_of(name.begin() + 1, name.end(), [](char c) { return c >= '0' && c <= '9'; });
}

bool IsSnapshotFile(const std::string& name) {
  const size_t slash = name.find('/');
  if (slash == std::string::npos || !IsPartitionFolder(name.substr(0, slash))) return false;
  const std::string_view file = std::string_view(name).substr(slash + 1);
  return file.find('/') == std::string_view::npos &&
         (file.ends_with(".sst") || file.find(".tmp") != std::string_view::npos);
}

}  // namespace

void DeleteSnapshotFiles(ObjectStore* store, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (StaysInside(name)) {
      MUSTER_FAILPOINT("unused.before-delete");
      Delete(store, name);
      MUSTER_FAILPOINT("unused.after-delete");
    } else {
      Log(LogLevel::kWarning, "the name of a snapshot file points outside its folder: '{}'", name);
    }
  }
}

std::set<std::string> NamedSnapshots(const DurableState& state) {
  std::set<std::string> named;
  for (const auto& [id, partition] : state.partitions) {
    for (const SnapshotFile& file : partition.manifest.files) named.insert(file.name);
  }
  for (const auto& [epoch, manifests] : state.kept) {
    for (const auto& [partition, manifest] : manifests) {
      for (const SnapshotFile& file : manifest.files) named.insert(file.name);
    }
  }
  if (state.group.checkpoint.has_value()) {
    for (const StateStripe& stripe : state.group.checkpoint->stripes) named.insert(stripe.object);
  }
  return named;
}

absl::StatusOr<std::vector<std::string>> ListSnapshots(ObjectStore* store) {
  MUSTER_ASSIGN_OR_RETURN(std::vector<std::string> names, store->List("group/"));
  std::erase_if(names, [](const auto& name) { return !StripeAttemptIn(name).has_value(); });
  MUSTER_ASSIGN_OR_RETURN(const std::vector<std::string> files, store->List("p"));
  std::ranges::copy_if(files, std::back_inserter(names), IsSnapshotFile);
  return names;
}

uint64_t DeleteOrphanSnapshots(ObjectStore* store, const std::set<std::string>& named,
                               MasterIncarnation own, AttemptNumber newest) {
  const absl::StatusOr<std::vector<std::string>> names = ListSnapshots(store);
  const absl::StatusOr<uint64_t> unfinished =
      store->DeleteUnfinished([&](const std::string& name) { return MaySweep(name, {}, own); });
  for (const absl::Status& status : {names.status(), unfinished.status()}) {
    if (!status.ok()) Log(LogLevel::kWarning, "orphan snapshots stay: {}", Message(status));
  }
  uint64_t deleted = unfinished.value_or(0);
  if (!names.ok()) return deleted;
  for (const std::string& name : *names) {
    const bool stripe = StripeAttemptIn(name).has_value();
    if (stripe ? !MaySweepStripe(name, named, newest) : !MaySweep(name, named, own)) continue;
    MUSTER_FAILPOINT("orphan.before-delete");
    Delete(store, name);
    MUSTER_FAILPOINT("orphan.after-delete");
    ++deleted;
  }
  return deleted;
}

}  // namespace muster
