#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/status/statusor.h"

namespace muster::collectives {

/// One GPU, through CUDA's driver interface (libcuda.so.1), which is loaded at run time. It uses
/// the device's primary context, as the CUDA runtime and PyTorch do. Functions need the context of
/// the thread: call Use in each thread first. Thread-safe.
class CudaDevice {
 public:
  /// A copy of the numbers of a sum in pinned memory of the host and on the device.
  struct Buffer {
    std::byte* host = nullptr;
    uint64_t device = 0;  // an address there
    size_t bytes = 0;
  };

  /// `library`: for tests; otherwise "libcuda.so.1". kNotFound: there is no driver;
  /// kFailedPrecondition: there is no such device, or the driver refuses it.
  static absl::StatusOr<std::shared_ptr<CudaDevice>> Open(const std::string& library,
                                                          int32_t ordinal);
  ~CudaDevice();
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;

  absl::Status Use() const;
  absl::StatusOr<void*> NewStream() const;
  void DeleteStream(void* stream) const;
  absl::StatusOr<Buffer> NewBuffer(size_t bytes) const;
  void DeleteBuffer(const Buffer& buffer) const;
  /// Begin copies of the first bytes of a buffer, in the order of the stream.
  absl::Status CopyToDevice(const Buffer& buffer, size_t bytes, void* stream) const;
  absl::Status CopyToHost(const Buffer& buffer, size_t bytes, void* stream) const;
  /// True: everything in the stream is done.
  absl::StatusOr<bool> IsDone(void* stream) const;

 private:
  struct Functions;
  CudaDevice() = default;
  absl::Status Check(int result, std::string_view what) const;

  std::unique_ptr<Functions> functions_;
  int device_ = 0;
  void* context_ = nullptr;
};

}  // namespace muster::collectives
