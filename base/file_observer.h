#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/failpoint_config.h"

/// A hook for tests, like base/failpoint.h. Release builds do not have it.
namespace muster {

/// Called right before every change that this process makes through base/file.h, by the thread that
/// makes the change. So a test can track what would survive a power loss.
class FileObserver {
 public:
  virtual ~FileObserver() = default;
  /// An empty file is created.
  virtual void Create(const std::string& path) = 0;
  virtual void Write(const std::string& path, uint64_t offset, std::string_view bytes) = 0;
  /// A file or a folder is synced.
  virtual void Sync(const std::string& path) = 0;
  virtual void Rename(const std::string& from, const std::string& to) = 0;
  virtual void Link(const std::string& from, const std::string& to) = 0;
  virtual void Remove(const std::string& path) = 0;
  virtual void MakeFolder(const std::string& path) = 0;
};

/// Sets the observer; null: none. Call it only while no other thread changes files.
void ObserveFiles(FileObserver* observer);

}  // namespace muster
