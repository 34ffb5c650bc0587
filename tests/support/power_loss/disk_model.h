#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"

namespace muster::testing {

/// Files and folders in memory that know which of their contents would survive a power loss: of a
/// file, the synced bytes; of a folder, the entries at its last sync. Nothing else is guaranteed.
/// Operations on paths that are not there do nothing and return false. Not thread-safe; a copy is a
/// disk of its own.
class DiskModel {
 public:
  struct Faults {
    /// Syncs of files, or of folders, do nothing. So a test can show that it detects missing syncs.
    bool files_stay_unsynced = false;
    bool folders_stay_unsynced = false;
  };
  DiskModel() = default;
  explicit DiskModel(const Faults& faults) : faults_(faults) {}
  DiskModel(const DiskModel& other);
  DiskModel& operator=(const DiskModel& other);

  /// Called before every change: a power loss now leaves the disk as it still is.
  void OnChange(std::function<void(const DiskModel&)> before) { before_ = std::move(before); }

  /// An empty file; what was there under the name is gone from it.
  bool Create(const std::string& path);
  bool Write(const std::string& path, uint64_t offset, std::string_view bytes);
  bool Append(const std::string& path, std::string_view bytes);
  bool Truncate(const std::string& path, uint64_t bytes);
  bool Sync(const std::string& path);
  bool Rename(const std::string& from, const std::string& to);
  bool Link(const std::string& from, const std::string& to);
  bool Remove(const std::string& path);
  bool MakeFolder(const std::string& path);
  bool SyncFolder(const std::string& path);

  bool IsFile(const std::string& path) const { return live_.contains(path); }
  bool IsFolder(const std::string& path) const { return folders_.contains(path); }
  /// Null when there is no such file; valid until the next change.
  const std::string* Contents(const std::string& path) const;
  /// Names in a folder, sorted.
  std::vector<std::string> Children(const std::string& folder) const;
  /// Every file's path, sorted.
  std::vector<std::string> Files() const;

  /// A disk as it might be found after a power loss now. Of every unsynced file the synced contents
  /// and then some of the writes since, the last of them cut off or with holes; of every unsynced
  /// folder the first changes to its entries, whose order every journaling file system keeps. `rng`
  /// decides, from nothing at all to everything.
  DiskModel AfterPowerLoss(Rng* rng) const;

  /// Writes every folder and file below `root` of this machine.
  void WriteTo(const std::string& root) const;

 private:
  struct Change {
    uint64_t offset = 0;
    std::string bytes;
    bool truncate = false;  // to `offset`
  };
  struct Inode {
    std::string live;
    std::string synced;
    std::vector<Change> since;
  };
  /// A change of a folder's entries: `inode` is now at `added`, and nothing at `removed`.
  struct EntryChange {
    std::string removed;
    std::string added;
    std::shared_ptr<Inode> inode;  // null: a folder
  };
  using Entries = std::map<std::string, std::shared_ptr<Inode>>;

  /// What the kernel writes as one.
  static constexpr uint64_t kPageBytes = 4096;

  static void Apply(const Change& change, std::string* contents);
  /// Of a write that reached the disk in part: every page is new, or as `before`, or zeros.
  static void MakeHoles(Change* change, const std::string& before, Rng* rng);
  void BeforeChange() const {
    if (before_) before_(*this);
  }
  Inode* Find(const std::string& path);
  void NoteEntry(EntryChange change);
  void CopyFrom(const DiskModel& other);

  Faults faults_;
  std::function<void(const DiskModel&)> before_;
  Entries live_;
  Entries synced_;
  std::set<std::string> folders_;
  std::set<std::string> synced_folders_;
  /// By folder, oldest first.
  std::map<std::string, std::vector<EntryChange>> unsynced_;
};

}  // namespace muster::testing
