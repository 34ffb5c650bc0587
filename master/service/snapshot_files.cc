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

ObjectStore::Undeleted DeleteSnapshotFiles(ObjectStore* store,
                                           const std::vector<std::string>& names) {
  std::vector<std::string> inside;
  for (const std::string& name : names) {
    if (StaysInside(name)) {
      inside.push_back(name);
    } else {
      Log(LogLevel::kWarning, "the name of a snapshot file points outside its folder: '{}'", name);
    }
  }
  MUSTER_FAILPOINT("unused.before-delete");
  ObjectStore::Undeleted left = store->DeleteAll(inside);
  MUSTER_FAILPOINT("unused.after-delete");
  if (!left.why.ok() && !absl::IsUnavailable(left.why)) {
    Log(LogLevel::kWarning, "{} unused snapshot files stay: {}", left.names.size(),
        Message(left.why));
  }
  return left;
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

std::vector<std::string> OrphanSnapshots(ObjectStore* store, const std::set<std::string>& named,
                                         MasterIncarnation own, AttemptNumber newest) {
  const auto may_sweep = [&](const std::string& name) {
    return StripeAttemptIn(name).has_value() ? MaySweepStripe(name, named, newest)
                                             : MaySweep(name, named, own);
  };
  absl::StatusOr<std::vector<std::string>> names = ListSnapshots(store);
  const absl::StatusOr<uint64_t> unfinished = store->DeleteUnfinished(may_sweep);
  for (const absl::Status& status : {names.status(), unfinished.status()}) {
    if (!status.ok()) Log(LogLevel::kWarning, "orphan snapshots stay: {}", Message(status));
  }
  if (unfinished.value_or(0) > 0) {
    Log(LogLevel::kInfo, "removed {} unfinished objects", *unfinished);
  }
  if (!names.ok()) return {};
  std::erase_if(*names, [&](const std::string& name) { return !may_sweep(name); });
  return *std::move(names);
}

}  // namespace muster
