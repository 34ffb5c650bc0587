#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "base/failpoint.h"
#include "base/file.h"
#include "base/status.h"
#include "store/object_store.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

std::string FolderOf(const std::string& path) {
  return fs::path(path).parent_path().string();
}

/// Adds the files of a folder, each as `prefix` and its name. A folder that cannot be read has
/// none.
void AddFiles(const fs::path& folder, const std::string& prefix, std::vector<std::string>* names) {
  std::error_code error;
  for (fs::directory_iterator file(folder, error), end; !error && file != end;
       file.increment(error)) {
    std::error_code ignored;
    if (!file->is_directory(ignored)) names->push_back(prefix + file->path().filename().string());
  }
}

constexpr size_t kHashDigits = 16;

/// The file that PutNew writes on the way to an object. Two writers of the same bytes share it.
std::string OnTheWayTo(const std::string& object, std::string_view bytes) {
  return fmt::format("{}.{:0{}x}", object, std::hash<std::string_view>()(bytes), kHashDigits);
}

/// The object on the way to which a file is: its own name, or what WriteFileAtomically makes of it
/// (".tmp.77"). None: it is not of PutNew.
std::optional<std::string> ObjectOfUnfinished(std::string_view name) {
  const size_t temporary = name.rfind(".tmp.");
  if (temporary != std::string_view::npos &&
      name.find_first_not_of("0123456789", temporary + 5) == std::string_view::npos) {
    name = name.substr(0, temporary);
  }
  if (name.size() <= kHashDigits + 1) return std::nullopt;
  const std::string_view object = name.substr(0, name.size() - kHashDigits - 1);
  const std::string_view hash = name.substr(object.size() + 1);
  const bool has_hash = hash.find_first_not_of("0123456789abcdef") == std::string_view::npos;
  if (name[object.size()] != '.' || !has_hash) return std::nullopt;
  return std::string(object);
}

class DirectoryStore final : public ObjectStore {
 public:
  explicit DirectoryStore(std::string directory) : ObjectStore(std::move(directory)) {}

  absl::StatusOr<LocalFile> Stage(const std::string& label) override {
    std::string path = Shown(label);
    MUSTER_FAILPOINT_OR_RETURN("snapshot.before-folder");
    MUSTER_RETURN_IF_ERROR(MakeDirectories(FolderOf(path)));
    return LocalFile::Removed(std::move(path));
  }

  absl::Status Publish(LocalFile staged, const std::string& name) override {
    const std::string path = Shown(name);
    MUSTER_FAILPOINT_OR_RETURN("snapshot.before-rename");
    MUSTER_RETURN_IF_ERROR(RenamePath(staged.path(), path));
    staged.Keep();
    absl::Status synced = MUSTER_FAILPOINT_STATUS("snapshot.after-rename");
    if (synced.ok()) synced = SyncPath(FolderOf(path));
    if (synced.ok()) synced = MUSTER_FAILPOINT_STATUS("snapshot.after-folder-sync");
    if (!synced.ok()) {
      MUSTER_FAILPOINT("snapshot.before-withdraw");
      RemoveFile(path);  // nothing has reported it yet
    }
    return synced;
  }

  absl::Status PutNew(const std::string& name, std::string_view bytes) override {
    MUSTER_RETURN_IF_ERROR(MakeDirectories(place()));
    const std::string path = Shown(name);
    // The bytes are written to another file, which is then linked. Unlike a rename, a link never
    // replaces an object of another writer.
    const std::string written = OnTheWayTo(path, bytes);
    MUSTER_FAILPOINT_OR_RETURN("owner.before-write");
    MUSTER_RETURN_IF_ERROR(WriteFileAtomically(written, bytes));
    absl::Cleanup remove = [&written] { RemoveFile(written); };
    MUSTER_FAILPOINT_OR_RETURN("owner.before-link");
    const absl::Status linked = LinkPath(written, path);
    if (!linked.ok() && !absl::IsAlreadyExists(linked)) return linked;
    MUSTER_FAILPOINT_OR_RETURN("owner.after-link");
    // Whoever has made the object may have died before this.
    MUSTER_RETURN_IF_ERROR(SyncPath(FolderOf(path)));
    return linked;
  }

  absl::StatusOr<std::string> Get(const std::string& name, uint64_t bytes_max) override {
    return ReadFile(Shown(name), bytes_max);
  }

  absl::StatusOr<LocalFile> Fetch(const std::string& name) override {
    return LocalFile::Kept(Shown(name));
  }

  absl::Status Delete(const std::string& name) override {
    std::error_code error;
    fs::remove(Shown(name), error);
    if (!error) return absl::OkStatus();
    return ErrnoStatus(error.value(), fmt::format("cannot delete {}", Shown(name)));
  }

  absl::StatusOr<std::vector<std::string>> List(const std::string& prefix) override {
    std::vector<std::string> names;
    AddFiles(place(), "", &names);
    std::error_code error;
    for (fs::directory_iterator folder(place(), error), end; !error && folder != end;
         folder.increment(error)) {
      std::error_code ignored;
      const std::string name = folder->path().filename().string() + "/";
      const bool wanted = name.starts_with(prefix) || prefix.starts_with(name);
      if (wanted && folder->is_directory(ignored)) AddFiles(folder->path(), name, &names);
    }
    std::erase_if(names, [&](const std::string& name) { return !name.starts_with(prefix); });
    std::ranges::sort(names);
    return names;
  }

  absl::StatusOr<uint64_t> DeleteUnfinished(const NameFilter& may_end) override {
    MUSTER_ASSIGN_OR_RETURN(const std::vector<std::string> names, List(""));
    uint64_t deleted = 0;
    for (const std::string& name : names) {
      const std::optional<std::string> object = ObjectOfUnfinished(name);
      if (!object.has_value() || !may_end(*object)) continue;
      MUSTER_RETURN_IF_ERROR(Delete(name));
      ++deleted;
    }
    return deleted;
  }

  absl::Status CheckWritable() override {
    const std::string probe = fmt::format("{}/.probe.{}", place(), ::getpid());
    MUSTER_RETURN_IF_ERROR(MakeDirectories(place()));
    const absl::Status status = WriteFileAtomically(probe, "");
    RemoveFile(probe);
    return status;
  }
};

}  // namespace

std::unique_ptr<ObjectStore> OpenDirectoryStore(const std::string& directory) {
  return std::make_unique<DirectoryStore>(directory);
}

}  // namespace muster
