#include "tests/support/power_loss/disk_model.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <utility>

namespace muster::testing {
namespace {

std::string FolderOf(const std::string& path) {
  return std::filesystem::path(path).parent_path().string();
}

}  // namespace

DiskModel::DiskModel(const DiskModel& other) {
  CopyFrom(other);
}

DiskModel& DiskModel::operator=(const DiskModel& other) {
  if (this != &other) CopyFrom(other);
  return *this;
}

void DiskModel::CopyFrom(const DiskModel& other) {
  std::map<const Inode*, std::shared_ptr<Inode>> copies;
  const auto copy = [&](const std::shared_ptr<Inode>& inode) {
    if (inode == nullptr) return inode;
    std::shared_ptr<Inode>& made = copies[inode.get()];
    if (made == nullptr) made = std::make_shared<Inode>(*inode);
    return made;
  };
  faults_ = other.faults_;
  before_ = nullptr;
  live_.clear();
  synced_.clear();
  for (const auto& [path, inode] : other.live_) live_[path] = copy(inode);
  for (const auto& [path, inode] : other.synced_) synced_[path] = copy(inode);
  folders_ = other.folders_;
  synced_folders_ = other.synced_folders_;
  unsynced_ = other.unsynced_;
  for (auto& [folder, changes] : unsynced_) {
    for (EntryChange& change : changes) change.inode = copy(change.inode);
  }
}

void DiskModel::MakeHoles(Change* change, const std::string& before, Rng* rng) {
  for (uint64_t begin = 0; begin < change->bytes.size();) {
    const uint64_t at = change->offset + begin;
    const uint64_t size = std::min(kPageBytes - at % kPageBytes, change->bytes.size() - begin);
    if (rng->Below(2) == 0) {
      std::string old = before.substr(std::min<size_t>(at, before.size()), size);
      old.resize(size);
      change->bytes.replace(begin, size, old);
    }
    begin += size;
  }
}

void DiskModel::Apply(const Change& change, std::string* contents) {
  if (change.truncate) {
    contents->resize(change.offset);
    return;
  }
  const size_t end = change.offset + change.bytes.size();
  if (contents->size() < end) contents->resize(end);
  contents->replace(change.offset, change.bytes.size(), change.bytes);
}

DiskModel::Inode* DiskModel::Find(const std::string& path) {
  const auto found = live_.find(path);
  return found == live_.end() ? nullptr : found->second.get();
}

const std::string* DiskModel::Contents(const std::string& path) const {
  const auto found = live_.find(path);
  return found == live_.end() ? nullptr : &found->second->live;
}

void DiskModel::NoteEntry(EntryChange change) {
  const std::string folder = FolderOf(change.added.empty() ? change.removed : change.added);
  unsynced_[folder].push_back(std::move(change));
}

bool DiskModel::Create(const std::string& path) {
  BeforeChange();
  auto inode = std::make_shared<Inode>();
  live_[path] = inode;
  NoteEntry({"", path, std::move(inode)});
  return true;
}

bool DiskModel::Write(const std::string& path, uint64_t offset, std::string_view bytes) {
  BeforeChange();
  Inode* const inode = Find(path);
  if (inode == nullptr) return false;
  inode->since.push_back({offset, std::string(bytes), false});
  Apply(inode->since.back(), &inode->live);
  return true;
}

bool DiskModel::Append(const std::string& path, std::string_view bytes) {
  const std::string* const contents = Contents(path);
  return contents != nullptr && Write(path, contents->size(), bytes);
}

bool DiskModel::Truncate(const std::string& path, uint64_t bytes) {
  BeforeChange();
  Inode* const inode = Find(path);
  if (inode == nullptr) return false;
  inode->since.push_back({bytes, "", true});
  Apply(inode->since.back(), &inode->live);
  return true;
}

bool DiskModel::Sync(const std::string& path) {
  BeforeChange();
  Inode* const inode = Find(path);
  if (inode == nullptr) return false;
  if (faults_.files_stay_unsynced) return true;
  for (const Change& change : inode->since) Apply(change, &inode->synced);
  inode->since.clear();
  return true;
}

bool DiskModel::Rename(const std::string& from, const std::string& to) {
  BeforeChange();
  if (folders_.contains(from)) {  // with all that is in it
    std::vector<std::pair<std::string, std::shared_ptr<Inode>>> moved;
    for (const auto& [path, inode] : live_) {
      if (path.starts_with(from + "/")) moved.emplace_back(path, inode);
    }
    for (const auto& [path, inode] : moved) {
      const std::string target = to + path.substr(from.size());
      live_.erase(path);
      live_[target] = inode;
      if (synced_.contains(path)) synced_[target] = inode;  // reached by the folder's name alone
    }
    folders_.erase(from);
    folders_.insert(to);
    NoteEntry({from, to, nullptr});
    return true;
  }
  const auto found = live_.find(from);
  if (found == live_.end()) return false;
  std::shared_ptr<Inode> inode = found->second;
  live_.erase(found);
  live_[to] = inode;
  NoteEntry({from, to, std::move(inode)});
  return true;
}

bool DiskModel::Link(const std::string& from, const std::string& to) {
  BeforeChange();
  const auto found = live_.find(from);
  if (found == live_.end() || live_.contains(to)) return false;
  live_[to] = found->second;
  NoteEntry({"", to, found->second});
  return true;
}

bool DiskModel::Remove(const std::string& path) {
  BeforeChange();
  if (live_.erase(path) == 0) return false;
  NoteEntry({path, "", nullptr});
  return true;
}

bool DiskModel::MakeFolder(const std::string& path) {
  BeforeChange();
  if (!folders_.insert(path).second) return false;
  NoteEntry({"", path, nullptr});
  return true;
}

bool DiskModel::SyncFolder(const std::string& path) {
  BeforeChange();
  if (faults_.folders_stay_unsynced) return true;
  for (const EntryChange& change : unsynced_[path]) {
    if (!change.removed.empty()) {
      synced_.erase(change.removed);
      synced_folders_.erase(change.removed);
    }
    if (change.added.empty()) continue;
    if (change.inode != nullptr) {
      synced_[change.added] = change.inode;
    } else {
      synced_folders_.insert(change.added);
    }
  }
  unsynced_.erase(path);
  return true;
}

std::vector<std::string> DiskModel::Children(const std::string& folder) const {
  std::vector<std::string> names;
  const auto add = [&](const std::string& path) {
    if (FolderOf(path) == folder) names.push_back(path.substr(folder.size() + 1));
  };
  for (const auto& [path, inode] : live_) add(path);
  for (const std::string& path : folders_) add(path);
  std::ranges::sort(names);
  return names;
}

std::vector<std::string> DiskModel::Files() const {
  std::vector<std::string> paths;
  for (const auto& [path, inode] : live_) paths.push_back(path);
  return paths;
}

DiskModel DiskModel::AfterPowerLoss(Rng* rng) const {
  // 0: what was not synced is gone; 1: all of it is there; 2: up to some moment, the write at it
  // cut off; 3: the same, the write with holes.
  const uint64_t mode = rng->Below(4);
  DiskModel after(*this);
  for (const auto& [folder, changes] : after.unsynced_) {
    const size_t moment = mode == 0   ? 0
                          : mode == 1 ? changes.size()
                                      : rng->Below(changes.size() + 1);
    for (size_t i = 0; i < moment; ++i) {
      const EntryChange& change = changes[i];
      if (!change.removed.empty()) {
        after.synced_.erase(change.removed);
        after.synced_folders_.erase(change.removed);
      }
      if (change.added.empty()) continue;
      if (change.inode != nullptr) {
        after.synced_[change.added] = change.inode;
      } else {
        after.synced_folders_.insert(change.added);
      }
    }
  }
  const auto reachable = [&](const std::string& path) {
    for (std::string folder = FolderOf(path); !folder.empty() && folder != "/";
         folder = FolderOf(folder)) {
      if (folders_.contains(folder) && !after.synced_folders_.contains(folder)) return false;
    }
    return true;
  };
  std::erase_if(after.synced_, [&](const auto& entry) { return !reachable(entry.first); });
  std::erase_if(after.synced_folders_, [&](const auto& path) { return !reachable(path); });
  for (const auto& [path, inode] : after.synced_) {
    const size_t moment = rng->Below(inode->since.size() + 1);
    for (size_t i = 0; i < inode->since.size() && (mode == 1 || i <= moment); ++i) {
      if (mode == 0) break;
      Change change = inode->since[i];
      if (mode == 2 && i == moment) change.bytes.resize(rng->Below(change.bytes.size() + 1));
      if (mode == 3 && i == moment) MakeHoles(&change, inode->synced, rng);
      Apply(change, &inode->synced);
    }
    inode->live = inode->synced;
    inode->since.clear();
  }
  after.unsynced_.clear();
  after.live_ = after.synced_;
  after.folders_ = after.synced_folders_;
  return after;
}

void DiskModel::WriteTo(const std::string& root) const {
  for (const std::string& folder : folders_) std::filesystem::create_directories(root + folder);
  for (const auto& [path, inode] : live_) {
    std::ofstream file(root + path, std::ios::binary | std::ios::trunc);
    file.write(inode->live.data(), static_cast<std::streamsize>(inode->live.size()));
  }
}

}  // namespace muster::testing
