#include "collectives/backends/gpu.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "base/status.h"
#include "base/words/number_bits.h"
#include "collectives/backends/gpu_kernels.h"

namespace muster::collectives {
namespace {

constexpr uint32_t kThreads = 256;  // of a block
/// The most blocks of the digest. Its threads take many elements each, and add to one number at the
/// end. So more threads take longer.
constexpr uint64_t kDigestBlocksMax = 256;
constexpr size_t kWord = sizeof(uint64_t);

uint32_t BlocksFor(uint64_t elements) {
  return static_cast<uint32_t>((elements + kThreads - 1) / kThreads);
}
const char* DigestName(SumType type) {
  return type == SumType::kInt64     ? "digest_64"
         : type == SumType::kFloat32 ? "digest_32"
                                     : "digest_16";
}

}  // namespace

GpuMemory::~GpuMemory() {
  gpu_->TakeBack(address_, bytes_);
}

Gpu::~Gpu() {
  const CudaDevice::Borrowed borrowed(device_.get());
  if (!borrowed.status().ok()) return;
  const MutexLock lock(&mutex_);
  for (const auto& [bytes, address] : free_) device_->DeleteMemory(address);
}

void Gpu::TakeBack(uint64_t address, size_t bytes) {
  const MutexLock lock(&mutex_);
  free_.emplace(bytes, address);
}

absl::StatusOr<std::shared_ptr<GpuMemory>> Gpu::NewMemory(size_t bytes) {
  {
    const MutexLock lock(&mutex_);
    if (const auto found = free_.find(bytes); found != free_.end()) {
      const uint64_t address = found->second;
      free_.erase(found);
      return std::make_shared<GpuMemory>(shared_from_this(), address, bytes);
    }
  }
  const CudaDevice::Borrowed borrowed(device_.get());
  MUSTER_RETURN_IF_ERROR(borrowed.status());
  MUSTER_ASSIGN_OR_RETURN(const uint64_t address, device_->NewMemory(bytes));
  return std::make_shared<GpuMemory>(shared_from_this(), address, bytes);
}

absl::StatusOr<std::shared_ptr<GpuBucket>> Gpu::NewBucket(const GpuBucketOptions& options) {
  auto bucket = std::make_shared<GpuBucket>(shared_from_this(), options);
  MUSTER_RETURN_IF_ERROR(bucket->Allocate());
  return bucket;
}

absl::Status Gpu::CopyToHost(const GpuMemory& from, std::span<std::byte> to) {
  const CudaDevice::Borrowed borrowed(device_.get());
  MUSTER_RETURN_IF_ERROR(borrowed.status());
  return device_->CopyNow(to, from.address());
}

absl::Status Gpu::CopyToDevice(std::span<const std::byte> from, const GpuMemory& to) {
  const CudaDevice::Borrowed borrowed(device_.get());
  MUSTER_RETURN_IF_ERROR(borrowed.status());
  return device_->CopyNow(to.address(), from);
}

absl::StatusOr<void*> Gpu::Function(const char* name) {
  const MutexLock lock(&mutex_);
  if (module_ == nullptr) {
    MUSTER_ASSIGN_OR_RETURN(module_, device_->LoadModule(gpu::kKernels));
  }
  if (const auto found = functions_.find(name); found != functions_.end()) return found->second;
  MUSTER_ASSIGN_OR_RETURN(void* const function, device_->FindFunction(module_, name));
  functions_.emplace(name, function);
  return function;
}

template <typename... Parameters>
absl::Status Gpu::Launch(const char* name, uint64_t elements, void* stream,
                         Parameters... parameters) {
  MUSTER_ASSIGN_OR_RETURN(void* const function, Function(name));
  void* addresses[] = {&elements, &parameters...};
  return device_->Launch(function, BlocksFor(elements), kThreads, stream, addresses);
}

absl::StatusOr<uint64_t> Gpu::Encode(GpuBucket* bucket, void* stream) {
  MUSTER_RETURN_IF_ERROR(device_->WaitFor(bucket->added_, stream));
  if (bucket->halves_ == nullptr) return bucket->sum_->address();
  MUSTER_RETURN_IF_ERROR(Launch("to_bfloat16", bucket->options_.elements, stream,
                                bucket->sum_->address(), bucket->halves_->address(),
                                bucket->bad_->address()));
  return bucket->halves_->address();
}

uint64_t Gpu::Bad(const GpuBucket& bucket) {
  return bucket.bad_->address();
}

absl::Status Gpu::Decode(const DeviceSum& sum, uint64_t result, void* stream) {
  const GpuBucketOptions& options = sum.bucket->options();
  const uint64_t from = sum.encoded->address();
  const uint64_t to = sum.floats->address();
  const uint64_t digest = result + kWord;
  MUSTER_RETURN_IF_ERROR(device_->Fill(result, 0xff, kWord, stream));
  MUSTER_RETURN_IF_ERROR(device_->Fill(digest, 0, kWord, stream));
  if (options.type == SumType::kInt64) {
    const double scale = std::ldexp(1.0, -static_cast<int>(options.fraction_bits));
    MUSTER_RETURN_IF_ERROR(Launch("from_fixed", options.elements, stream, from, to, scale));
  } else {
    const char* const name = options.type == SumType::kFloat32 ? "from_float" : "from_bfloat16";
    MUSTER_RETURN_IF_ERROR(Launch(name, options.elements, stream, from, to, result));
  }
  MUSTER_ASSIGN_OR_RETURN(void* const function, Function(DigestName(options.type)));
  uint64_t elements = options.elements;
  void* parameters[] = {&elements, const_cast<uint64_t*>(&from), const_cast<uint64_t*>(&digest)};
  const auto blocks = std::min<uint64_t>(BlocksFor(elements), kDigestBlocksMax);
  return device_->Launch(function, static_cast<uint32_t>(blocks), kThreads, stream, parameters);
}

// ---- a bucket ----

absl::Status GpuBucket::Allocate() {
  const CudaDevice& device = *gpu_->device_;
  const CudaDevice::Borrowed borrowed(&device);
  MUSTER_RETURN_IF_ERROR(borrowed.status());
  const bool half = options_.type == SumType::kBfloat16;
  const size_t each = half ? sizeof(float) : ElementBytes(options_.type);
  MUSTER_ASSIGN_OR_RETURN(sum_, gpu_->NewMemory(options_.elements * each));
  if (half) {
    MUSTER_ASSIGN_OR_RETURN(halves_, gpu_->NewMemory(options_.elements * sizeof(uint16_t)));
  }
  MUSTER_ASSIGN_OR_RETURN(bad_, gpu_->NewMemory(kWord));
  MUSTER_ASSIGN_OR_RETURN(own_stream_, device.NewStream());
  MUSTER_ASSIGN_OR_RETURN(added_, device.NewEvent());
  // The functions are compiled now, because it takes long, and an error belongs to this call.
  return gpu_->Function("add_float").status();
}

GpuBucket::~GpuBucket() {
  const CudaDevice& device = *gpu_->device_;
  const CudaDevice::Borrowed borrowed(&device);
  if (!borrowed.status().ok()) return;
  if (added_ != nullptr) {
    // Nothing may still write to the memory when others get it.
    device.Await(added_).IgnoreError();
    device.DeleteEvent(added_);
  }
  if (own_stream_ != nullptr) device.DeleteStream(own_stream_);
}

absl::Status GpuBucket::Add(uint64_t gradient, void* stream, bool first) {
  const CudaDevice& device = *gpu_->device_;
  const CudaDevice::Borrowed borrowed(&device);
  MUSTER_RETURN_IF_ERROR(borrowed.status());
  // Minibatches may come in different streams.
  MUSTER_RETURN_IF_ERROR(device.WaitFor(added_, stream));
  if (first) MUSTER_RETURN_IF_ERROR(device.Fill(bad_->address(), 0xff, kWord, stream));
  const uint64_t sum = sum_->address();
  const uint64_t bad = bad_->address();
  const uint32_t stores = first ? 1 : 0;
  if (options_.type == SumType::kInt64) {
    const double scale = std::ldexp(1.0, static_cast<int>(options_.fraction_bits));
    const uint32_t limit = FixedPointLimitBits(scale);
    MUSTER_RETURN_IF_ERROR(gpu_->Launch("add_fixed", options_.elements, stream, gradient, sum,
                                        scale, limit, stores, bad));
  } else {
    MUSTER_RETURN_IF_ERROR(
        gpu_->Launch("add_float", options_.elements, stream, gradient, sum, stores, bad));
  }
  return device.Record(added_, stream);
}

absl::Status GpuBucket::Clear() {
  const CudaDevice& device = *gpu_->device_;
  const CudaDevice::Borrowed borrowed(&device);
  MUSTER_RETURN_IF_ERROR(borrowed.status());
  MUSTER_RETURN_IF_ERROR(device.WaitFor(added_, own_stream_));
  MUSTER_RETURN_IF_ERROR(device.Fill(bad_->address(), 0xff, kWord, own_stream_));
  MUSTER_RETURN_IF_ERROR(device.Fill(sum_->address(), 0, sum_->bytes(), own_stream_));
  return device.Record(added_, own_stream_);
}

}  // namespace muster::collectives
