#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace muster::collectives {

/// A shared library that is loaded at run time, and stays loaded until the process ends. A value.
class DynamicLibrary {
 public:
  /// `isolated`: the library and what it needs prefer their own symbols to those of the program.
  /// kNotFound: the dynamic linker cannot load it; the message is the linker's, with the name.
  static absl::StatusOr<DynamicLibrary> Load(const std::string& name, bool isolated = false);

  /// Sets `function` to the symbol of this name. kUnimplemented: there is none.
  template <typename Function>
  absl::Status Find(const char* symbol, Function** function) const {
    absl::StatusOr<void*> found = FindAddress(symbol);
    if (!found.ok()) return found.status();
    *function = reinterpret_cast<Function*>(*found);
    return absl::OkStatus();
  }
  /// The file that was loaded, as the linker found it.
  const std::string& path() const { return path_; }

 private:
  DynamicLibrary(void* handle, std::string path) : handle_(handle), path_(std::move(path)) {}
  absl::StatusOr<void*> FindAddress(const char* symbol) const;

  void* handle_;
  std::string path_;
};

}  // namespace muster::collectives
