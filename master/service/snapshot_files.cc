#include "master/service/snapshot_files.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "base/failpoint.h"
#include "base/log.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

bool StaysInside(const std::string& name) {
  const fs::path path(name);
  return !name.empty() && path.is_relative() &&
         std::none_of(path.begin(), path.end(), [](const fs::path& part) { return part == ".."; });
}

void Delete(const fs::path& path) {
  std::error_code error;
  fs::remove(path, error);
  if (error) {
    Log(LogLevel::kWarning, "cannot delete the unused snapshot file {}: {}", path.string(),
        error.message());
  }
}

bool IsPartitionFolder(const std::string& name) {
  return name.size() > 1 && name[0] == 'p' &&
         std::all_of(name.begin() + 1, name.end(), [](char c) { return c >= '0' && c <= '9'; });
}

bool IsSnapshotFile(const std::string& name) {
  const std::string_view view(name);
  return view.ends_with(".sst") || view.find(".tmp") != std::string_view::npos;
}

}  // namespace

void DeleteSnapshotFiles(const std::string& directory, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (StaysInside(name)) {
      MUSTER_FAILPOINT("unused.before-delete");
      Delete(fs::path(directory) / name);
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
  return named;
}

std::vector<std::string> ListSnapshots(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator folder(directory, error), end; !error && folder != end;
       folder.increment(error)) {
    const std::string folder_name = folder->path().filename().string();
    if (!folder->is_directory(error) || !IsPartitionFolder(folder_name)) continue;
    for (fs::directory_iterator file(folder->path(), error); !error && file != end;
         file.increment(error)) {
      const std::string name = file->path().filename().string();
      if (IsSnapshotFile(name)) names.push_back(folder_name + "/" + name);
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

uint64_t DeleteOrphanSnapshots(const std::string& directory, const std::set<std::string>& named) {
  uint64_t deleted = 0;
  for (const std::string& name : ListSnapshots(directory)) {
    if (named.contains(name)) continue;
    MUSTER_FAILPOINT("orphan.before-delete");
    Delete(fs::path(directory) / name);
    MUSTER_FAILPOINT("orphan.after-delete");
    ++deleted;
  }
  return deleted;
}

}  // namespace muster
