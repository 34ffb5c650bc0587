#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/failpoint_config.h"

/// Like base/failpoint.h for tests, and in no release build.
namespace muster {

/// Is told of every change that this process makes through base/file.h, right before it: a test can
/// keep a second account of what would survive a power loss. Called by the thread that makes the
/// change.
class FileObserver {
 public:
  virtual ~FileObserver() = default;
  /// An empty file.
  virtual void Create(const std::string& path) = 0;
  virtual void Write(const std::string& path, uint64_t offset, std::string_view bytes) = 0;
  /// Of a file or a folder.
  virtual void Sync(const std::string& path) = 0;
  virtual void Rename(const std::string& from, const std::string& to) = 0;
  virtual void Link(const std::string& from, const std::string& to) = 0;
  virtual void Remove(const std::string& path) = 0;
  virtual void MakeFolder(const std::string& path) = 0;
};

/// From now on `observer` is told, null: nobody is. Only while no other thread changes files.
void ObserveFiles(FileObserver* observer);

}  // namespace muster
