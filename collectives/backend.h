#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/checksum/crc32c.h"
#include "collectives/add_elements.h"

namespace muster::collectives {

class Gpu;
class GpuBucket;
class GpuMemory;

/// The sum of a bucket over all members, on a GPU (backends/gpu.h).
struct DeviceSum {
  std::shared_ptr<GpuBucket> bucket;   // of this member
  std::shared_ptr<GpuMemory> encoded;  // where the sum goes: elements of the bucket's type
  std::shared_ptr<GpuMemory> floats;   // and as float32
};

/// What tells a call of a backend that its attempt is over.
class AbortSignal {
 public:
  virtual ~AbortSignal() = default;
  virtual bool aborted() const = 0;
};

/// The members of one attempt as a backend connects them. All calls come from one thread, apart
/// from Abort.
class Communicator {
 public:
  /// Must not wait for other members.
  virtual ~Communicator() = default;

  /// Memory of the communicator, of this size, aligned to 64 bytes. It stays valid until the next
  /// call. Sums work fastest in it, for example because it is pinned.
  virtual absl::StatusOr<std::span<std::byte>> Buffer(size_t bytes) = 0;
  /// Replaces `data`, memory of Buffer, by its sum over all members. All members get the same bits.
  /// Blocks until it is done or has failed. It looks at the signal meanwhile and returns kAborted.
  virtual absl::Status Sum(SumType type, std::span<std::byte> data) = 0;
  /// A short digest of a sum: the same at all members.
  virtual uint32_t Digest(SumType, std::span<const std::byte> sum) const { return Crc32c(sum); }
  /// The sum of buckets of the backend's device, and its digest. Members may have a bucket on a
  /// device or not: their sums have the same bits. Otherwise like Sum. kOutOfRange: an element of
  /// the bucket or of the sum is no number, or too large for the type; the text names it.
  virtual absl::StatusOr<uint32_t> SumOnDevice(const DeviceSum&) {
    return absl::UnimplementedError("this library adds no buckets on a device");
  }
  /// For backends that cannot look at a signal inside of Sum: makes Sum return, if it can. Any
  /// thread.
  virtual void Abort() {}
};

/// A library that adds buckets for members, in place of the ring of this folder. Thread-safe.
class Backend {
 public:
  /// Which members a communicator connects.
  struct Place {
    uint32_t rank = 0;
    uint32_t members = 1;
  };
  /// The longest id of a communicator, in bytes.
  static constexpr size_t kIdBytesMax = 1'024;

  virtual ~Backend() = default;
  /// As messages name it: "NCCL".
  virtual std::string_view name() const = 0;
  /// Where buckets may be; null: only in the memory of the process.
  virtual Gpu* device() { return nullptr; }
  /// The member of rank 0 makes the id of a new communicator, and all members connect with it.
  virtual absl::StatusOr<std::vector<std::byte>> NewId() = 0;
  /// Blocks until all members have connected. It looks at the signal, which outlives the
  /// communicator, and returns kAborted.
  virtual absl::StatusOr<std::unique_ptr<Communicator>> Connect(std::span<const std::byte> id,
                                                                Place place,
                                                                const AbortSignal* signal) = 0;
};

}  // namespace muster::collectives
