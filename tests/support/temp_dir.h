#pragma once

#include <string>

namespace muster::testing {

/// A fresh folder, removed with all its contents at the end of the scope. Its path is short enough
/// for UNIX sockets.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  const std::string& path() const { return path_; }
  /// path() + "/" + name.
  std::string File(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace muster::testing
