#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "collectives/add_elements.h"
#include "collectives/backend.h"
#include "collectives/backends/cuda_device.h"

namespace muster::collectives {

/// Memory of a GPU, by its address there. The GPU keeps the memory for others when the last owner
/// is gone. Immutable.
class GpuMemory {
 public:
  GpuMemory(std::shared_ptr<Gpu> gpu, uint64_t address, size_t bytes)
      : gpu_(std::move(gpu)), address_(address), bytes_(bytes) {}
  ~GpuMemory();
  GpuMemory(const GpuMemory&) = delete;
  GpuMemory& operator=(const GpuMemory&) = delete;
  uint64_t address() const { return address_; }
  size_t bytes() const { return bytes_; }

 private:
  const std::shared_ptr<Gpu> gpu_;
  const uint64_t address_;
  const size_t bytes_;
};

/// What a bucket on a GPU is: float32 gradients, added up as this type. kInt64: fixed point.
struct GpuBucketOptions {
  SumType type = SumType::kInt64;
  uint64_t elements = 0;
  uint32_t fraction_bits = 0;
};

/// Gradients and sums in the memory of one GPU. Thread-safe. Errors: kFailedPrecondition, with the
/// reason of the driver.
class Gpu final : public std::enable_shared_from_this<Gpu> {
 public:
  explicit Gpu(std::shared_ptr<CudaDevice> device) : device_(std::move(device)) {}
  ~Gpu();
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  /// The first call also compiles the functions.
  absl::StatusOr<std::shared_ptr<GpuBucket>> NewBucket(const GpuBucketOptions& options);
  absl::StatusOr<std::shared_ptr<GpuMemory>> NewMemory(size_t bytes);
  /// Copy all of the memory, which nothing else may use, and block until that is done.
  absl::Status CopyToHost(const GpuMemory& from, std::span<std::byte> to);
  absl::Status CopyToDevice(std::span<const std::byte> from, const GpuMemory& to);

  // ---- in the order of a stream; the thread uses the device's context ----

  /// Returns the address of the gradients of a bucket, as they are added with those of others. The
  /// word at Bad() names the first element that their type cannot hold.
  absl::StatusOr<uint64_t> Encode(GpuBucket* bucket, void* stream);
  static uint64_t Bad(const GpuBucket& bucket);
  /// Makes numbers of a sum, and its digest: `result` is the address of two words, the first
  /// element that is no number (kNone of gpu_loops.h: none), and the digest.
  absl::Status Decode(const DeviceSum& sum, uint64_t result, void* stream);

 private:
  friend class GpuBucket;
  friend class GpuMemory;
  /// Launches a function with a thread for each element.
  template <typename... Parameters>
  absl::Status Launch(const char* name, uint64_t elements, void* stream, Parameters... parameters);
  absl::StatusOr<void*> Function(const char* name);
  void TakeBack(uint64_t address, size_t bytes);

  const std::shared_ptr<CudaDevice> device_;
  Mutex mutex_;
  void* module_ MUSTER_GUARDED_BY(mutex_) = nullptr;
  std::map<std::string, void*> functions_ MUSTER_GUARDED_BY(mutex_);
  /// Memory that nobody uses, by size. It is not given back to the driver, because that could wait
  /// for everything that the GPU does, also for other members.
  std::multimap<size_t, uint64_t> free_ MUSTER_GUARDED_BY(mutex_);
};

/// The gradients of one member, added up on a GPU, and the first element that their type cannot
/// hold. Calls exclude each other.
class GpuBucket {
 public:
  GpuBucket(std::shared_ptr<Gpu> gpu, const GpuBucketOptions& options)
      : gpu_(std::move(gpu)), options_(options) {}
  ~GpuBucket();
  GpuBucket(const GpuBucket&) = delete;
  GpuBucket& operator=(const GpuBucket&) = delete;
  absl::Status Allocate();

  /// Adds `elements` float32 at an address of the GPU, after what is in that stream of the GPU, and
  /// returns before it has happened. `first`: forgets what was there. Elements that the type cannot
  /// hold are reported by the sum.
  absl::Status Add(uint64_t gradient, void* stream, bool first);
  /// All elements are zero.
  absl::Status Clear();
  const GpuBucketOptions& options() const { return options_; }

 private:
  friend class Gpu;
  const std::shared_ptr<Gpu> gpu_;
  const GpuBucketOptions options_;
  std::shared_ptr<GpuMemory> sum_;
  std::shared_ptr<GpuMemory> halves_;  // of kBfloat16, which is added up as float32
  std::shared_ptr<GpuMemory> bad_;
  void* own_stream_ = nullptr;
  void* added_ = nullptr;  // the event after the last addition
};

}  // namespace muster::collectives
