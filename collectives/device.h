#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/statusor.h"
#include "collectives/reduce_kernels.h"

namespace muster::collectives {

/// Memory of a device, by its address there. The device keeps the memory for others when the last
/// owner is gone. Immutable.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;
  uint64_t address() const { return address_; }
  size_t bytes() const { return bytes_; }

 protected:
  DeviceMemory(uint64_t address, size_t bytes) : address_(address), bytes_(bytes) {}

 private:
  const uint64_t address_;
  const size_t bytes_;
};

/// What a bucket on a device is: float32 gradients, added up as this type. kInt64: fixed point.
struct DeviceBucketOptions {
  SumType type = SumType::kInt64;
  uint64_t elements = 0;
  uint32_t fraction_bits = 0;
};

/// The gradients of one member, added up on a device. Calls exclude each other.
class DeviceBucket {
 public:
  virtual ~DeviceBucket() = default;
  /// Adds `elements` float32 at an address of the device, after what is in that stream of the
  /// device, and returns before it has happened. `first`: forgets what was there. Elements that the
  /// type cannot hold are reported by the sum.
  virtual absl::Status Add(uint64_t gradient, void* stream, bool first) = 0;
  /// All elements are zero.
  virtual absl::Status Clear() = 0;
};

/// The sum of a bucket over all members, on a device.
struct DeviceSum {
  std::shared_ptr<DeviceBucket> bucket;   // of this member
  std::shared_ptr<DeviceMemory> encoded;  // where the sum goes: elements of the bucket's type
  std::shared_ptr<DeviceMemory> floats;   // and as float32
};

/// A GPU, as gradients and sums are kept there. It outlives what it makes. Thread-safe. Errors:
/// kFailedPrecondition, with the reason of the driver.
class Device {
 public:
  virtual ~Device() = default;
  virtual absl::StatusOr<std::shared_ptr<DeviceMemory>> NewMemory(size_t bytes) = 0;
  virtual absl::StatusOr<std::shared_ptr<DeviceBucket>> NewBucket(
      const DeviceBucketOptions& options) = 0;
  /// Copy all of the memory, which nothing else may use, and block until that is done.
  virtual absl::Status CopyToHost(const DeviceMemory& from, std::span<std::byte> to) = 0;
  virtual absl::Status CopyToDevice(std::span<const std::byte> from, const DeviceMemory& to) = 0;
};

}  // namespace muster::collectives
