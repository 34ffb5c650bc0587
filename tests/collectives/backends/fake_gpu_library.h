#pragma once

#include <string>

#include "base/check.h"
#include "base/status.h"
#include "collectives/backends/dynamic_library.h"
#include "collectives/backends/nccl_backend.h"
#include "tests/collectives/backends/fake_gpu.h"

namespace muster::collectives::testing {

/// The library fake_gpu, as tests steer it. While it lives, its faults hold.
class FakeGpuLibrary {
 public:
  FakeGpuLibrary() {
    absl::StatusOr<DynamicLibrary> library = DynamicLibrary::Load(MUSTER_FAKE_GPU);
    MUSTER_CHECK_MSG(library.ok(), Message(library.status()));
    MUSTER_CHECK(library->Find("fake_gpu_set_fault", &set_fault_).ok());
    MUSTER_CHECK(library->Find("fake_gpu_set_version", &set_version_).ok());
    MUSTER_CHECK(library->Find("fake_gpu_communicators", &communicators_).ok());
    MUSTER_CHECK(library->Find("fake_gpu_sums", &sums_).ok());
    MUSTER_CHECK(library->Find("fake_gpu_pinned", &pinned_).ok());
  }
  ~FakeGpuLibrary() {
    Set(FakeGpuFault::kNone);
    SetVersion(22'203);
  }
  FakeGpuLibrary(const FakeGpuLibrary&) = delete;
  FakeGpuLibrary& operator=(const FakeGpuLibrary&) = delete;

  void Set(FakeGpuFault fault) { set_fault_(static_cast<int>(fault)); }
  void SetVersion(int version) { set_version_(version); }
  int communicators() { return communicators_(); }
  int sums() { return sums_(); }
  int pinned() { return pinned_(); }
  /// Where NCCL and CUDA are. Nobody waits for the end of an attempt after an error.
  static NcclOptions Options() {
    return {.library = MUSTER_FAKE_GPU,
            .cuda = MUSTER_FAKE_GPU,
            .error_patience = std::chrono::milliseconds(0)};
  }

 private:
  void (*set_fault_)(int) = nullptr;
  void (*set_version_)(int) = nullptr;
  int (*communicators_)() = nullptr;
  int (*sums_)() = nullptr;
  int (*pinned_)() = nullptr;
};

}  // namespace muster::collectives::testing
