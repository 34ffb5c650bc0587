#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

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
  /// Gives the device's context to a thread of the trainer. When this ends, the thread has its own
  /// again.
  class Borrowed {
   public:
    explicit Borrowed(const CudaDevice* device);
    ~Borrowed();
    Borrowed(const Borrowed&) = delete;
    Borrowed& operator=(const Borrowed&) = delete;
    const absl::Status& status() const { return status_; }

   private:
    const CudaDevice* const device_;
    absl::Status status_;
    int capture_mode_;  // the thread's own, while this one lives
  };
  absl::StatusOr<void*> NewStream() const;
  void DeleteStream(void* stream) const;
  absl::StatusOr<Buffer> NewBuffer(size_t bytes) const;
  void DeleteBuffer(const Buffer& buffer) const;
  /// Begin copies of the first bytes of a buffer, in the order of the stream.
  absl::Status CopyToDevice(const Buffer& buffer, size_t bytes, void* stream) const;
  absl::Status CopyToHost(const Buffer& buffer, size_t bytes, void* stream) const;
  /// True: everything in the stream is done.
  absl::StatusOr<bool> IsDone(void* stream) const;

  absl::StatusOr<uint64_t> NewMemory(size_t bytes) const;
  void DeleteMemory(uint64_t address) const;
  /// Begins to set bytes, in the order of the stream.
  absl::Status Fill(uint64_t address, uint8_t value, size_t bytes, void* stream) const;
  /// Begins a copy to pinned memory, in the order of the stream.
  absl::Status CopyToPinned(std::byte* to, uint64_t from, size_t bytes, void* stream) const;
  /// Copy, and wait until every stream may use the copy.
  absl::Status CopyNow(std::span<std::byte> to, uint64_t from) const;
  absl::Status CopyNow(uint64_t to, std::span<const std::byte> from) const;

  /// A mark in a stream, which other streams can wait for. Until it is recorded, nothing waits.
  absl::StatusOr<void*> NewEvent() const;
  void DeleteEvent(void* event) const;
  absl::Status Record(void* event, void* stream) const;
  absl::Status WaitFor(void* event, void* stream) const;
  /// Blocks until what was in the stream before the event is done.
  absl::Status Await(void* event) const;

  /// Functions as PTX; they stay until the process ends.
  absl::StatusOr<void*> LoadModule(const char* ptx) const;
  absl::StatusOr<void*> FindFunction(void* module, const char* name) const;
  /// Begins a function, in the order of the stream. `parameters` are addresses of values.
  absl::Status Launch(void* function, uint32_t blocks, uint32_t threads, void* stream,
                      void** parameters) const;

 private:
  struct Functions;
  CudaDevice() = default;
  absl::Status Check(int result, std::string_view what) const;

  std::unique_ptr<Functions> functions_;
  int device_ = 0;
  void* context_ = nullptr;
};

}  // namespace muster::collectives
