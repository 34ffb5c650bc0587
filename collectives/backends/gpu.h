#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "base/mutex.h"
#include "collectives/backends/cuda_device.h"
#include "collectives/device.h"

namespace muster::collectives {

class GpuBucket;

/// Gradients and sums in the memory of one GPU. Thread-safe.
class Gpu final : public Device, public std::enable_shared_from_this<Gpu> {
 public:
  explicit Gpu(std::shared_ptr<CudaDevice> device) : device_(std::move(device)) {}
  ~Gpu() override;

  /// Also compiles the functions, when it is called first.
  absl::StatusOr<std::shared_ptr<DeviceBucket>> NewBucket(
      const DeviceBucketOptions& options) override;
  absl::StatusOr<std::shared_ptr<DeviceMemory>> NewMemory(size_t bytes) override;
  absl::Status CopyToHost(const DeviceMemory& from, std::span<std::byte> to) override;
  absl::Status CopyToDevice(std::span<const std::byte> from, const DeviceMemory& to) override;

  // ---- in the order of a stream; the thread uses the device's context ----

  /// The gradients of a bucket as they are added with those of others: their address. Errors of
  /// elements are in the word at bad().
  absl::StatusOr<uint64_t> Encode(GpuBucket* bucket, void* stream);
  static uint64_t Bad(const GpuBucket& bucket);
  /// Makes numbers of a sum, and its digest: `result` is the address of two words, the first
  /// element that is no number (kNone of gpu_loops.h: none), and the digest.
  absl::Status Decode(const DeviceSum& sum, uint64_t result, void* stream);

 private:
  friend class GpuBucket;
  class Memory;
  /// Launches a function for each element, or for `threads_max` threads in all.
  template <typename... Parameters>
  absl::Status Launch(const char* name, uint64_t elements, void* stream, Parameters... parameters);
  absl::StatusOr<void*> Function(const char* name);
  void TakeBack(uint64_t address, size_t bytes);

  const std::shared_ptr<CudaDevice> device_;
  Mutex mutex_;
  void* module_ MUSTER_GUARDED_BY(mutex_) = nullptr;
  std::map<std::string, void*> functions_ MUSTER_GUARDED_BY(mutex_);
  /// Memory that nobody uses, by size. To give it to the driver could wait for everything that the
  /// GPU does, also for other members.
  std::multimap<size_t, uint64_t> free_ MUSTER_GUARDED_BY(mutex_);
};

/// One bucket: the sum of this member's gradients, and the first element that its type cannot hold.
class GpuBucket final : public DeviceBucket {
 public:
  GpuBucket(std::shared_ptr<Gpu> gpu, const DeviceBucketOptions& options)
      : gpu_(std::move(gpu)), options_(options) {}
  ~GpuBucket() override;
  absl::Status Allocate();

  absl::Status Add(uint64_t gradient, void* stream, bool first) override;
  absl::Status Clear() override;
  const DeviceBucketOptions& options() const { return options_; }

 private:
  friend class Gpu;
  const std::shared_ptr<Gpu> gpu_;
  const DeviceBucketOptions options_;
  std::shared_ptr<DeviceMemory> sum_;
  std::shared_ptr<DeviceMemory> halves_;  // of kBfloat16, which is added up as float32
  std::shared_ptr<DeviceMemory> bad_;
  void* own_stream_ = nullptr;
  void* added_ = nullptr;  // the event after the last addition
};

}  // namespace muster::collectives
