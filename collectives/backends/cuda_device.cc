#include "collectives/backends/cuda_device.h"

#include <fmt/format.h>

#include "base/status.h"
#include "collectives/backends/dynamic_library.h"

namespace muster::collectives {
namespace {

constexpr int kSuccess = 0;
constexpr int kNotReady = 600;

}  // namespace

/// Of CUDA's driver interface (https://docs.nvidia.com/cuda/cuda-driver-api), by their names
/// without the prefix "cu". A result is 0, or an error.
struct CudaDevice::Functions {
  int (*Init)(unsigned int flags) = nullptr;
  int (*DeviceGet)(int* device, int ordinal) = nullptr;
  int (*DevicePrimaryCtxRetain)(void** context, int device) = nullptr;
  int (*DevicePrimaryCtxRelease)(int device) = nullptr;
  int (*CtxSetCurrent)(void* context) = nullptr;
  int (*StreamCreate)(void** stream, unsigned int flags) = nullptr;
  int (*StreamDestroy)(void* stream) = nullptr;
  int (*StreamQuery)(void* stream) = nullptr;
  int (*MemAlloc)(uint64_t* address, size_t bytes) = nullptr;
  int (*MemFree)(uint64_t address) = nullptr;
  int (*MemAllocHost)(void** memory, size_t bytes) = nullptr;
  int (*MemFreeHost)(void* memory) = nullptr;
  int (*MemcpyHtoDAsync)(uint64_t to, const void* from, size_t bytes, void* stream) = nullptr;
  int (*MemcpyDtoHAsync)(void* to, uint64_t from, size_t bytes, void* stream) = nullptr;
  int (*GetErrorString)(int error, const char** text) = nullptr;

  absl::Status FindAll(const DynamicLibrary& library) {
    MUSTER_RETURN_IF_ERROR(library.Find("cuInit", &Init));
    MUSTER_RETURN_IF_ERROR(library.Find("cuDeviceGet", &DeviceGet));
    MUSTER_RETURN_IF_ERROR(library.Find("cuDevicePrimaryCtxRetain", &DevicePrimaryCtxRetain));
    MUSTER_RETURN_IF_ERROR(library.Find("cuDevicePrimaryCtxRelease_v2", &DevicePrimaryCtxRelease));
    MUSTER_RETURN_IF_ERROR(library.Find("cuCtxSetCurrent", &CtxSetCurrent));
    MUSTER_RETURN_IF_ERROR(library.Find("cuStreamCreate", &StreamCreate));
    MUSTER_RETURN_IF_ERROR(library.Find("cuStreamDestroy_v2", &StreamDestroy));
    MUSTER_RETURN_IF_ERROR(library.Find("cuStreamQuery", &StreamQuery));
    MUSTER_RETURN_IF_ERROR(library.Find("cuMemAlloc_v2", &MemAlloc));
    MUSTER_RETURN_IF_ERROR(library.Find("cuMemFree_v2", &MemFree));
    MUSTER_RETURN_IF_ERROR(library.Find("cuMemAllocHost_v2", &MemAllocHost));
    MUSTER_RETURN_IF_ERROR(library.Find("cuMemFreeHost", &MemFreeHost));
    MUSTER_RETURN_IF_ERROR(library.Find("cuMemcpyHtoDAsync_v2", &MemcpyHtoDAsync));
    MUSTER_RETURN_IF_ERROR(library.Find("cuMemcpyDtoHAsync_v2", &MemcpyDtoHAsync));
    return library.Find("cuGetErrorString", &GetErrorString);
  }
};

absl::StatusOr<std::shared_ptr<CudaDevice>> CudaDevice::Open(const std::string& library,
                                                             int32_t ordinal) {
  MUSTER_ASSIGN_OR_RETURN(const DynamicLibrary loaded, DynamicLibrary::Load(library));
  std::shared_ptr<CudaDevice> device(new CudaDevice());
  device->functions_ = std::make_unique<Functions>();
  const Functions& cuda = *device->functions_;
  MUSTER_RETURN_IF_ERROR(device->functions_->FindAll(loaded));
  MUSTER_RETURN_IF_ERROR(device->Check(cuda.Init(0), "CUDA does not start"));
  const std::string which = fmt::format("GPU {} cannot be used", ordinal);
  MUSTER_RETURN_IF_ERROR(device->Check(cuda.DeviceGet(&device->device_, ordinal), which));
  MUSTER_RETURN_IF_ERROR(
      device->Check(cuda.DevicePrimaryCtxRetain(&device->context_, device->device_), which));
  return device;
}

CudaDevice::~CudaDevice() {
  if (context_ != nullptr) functions_->DevicePrimaryCtxRelease(device_);
}

absl::Status CudaDevice::Check(int result, std::string_view what) const {
  if (result == kSuccess) return absl::OkStatus();
  const char* text = nullptr;
  if (functions_->GetErrorString(result, &text) != kSuccess || text == nullptr) text = "unknown";
  return absl::FailedPreconditionError(fmt::format("{}: CUDA error {} ({})", what, result, text));
}

absl::Status CudaDevice::Use() const {
  return Check(functions_->CtxSetCurrent(context_), "the GPU cannot be used by this thread");
}

absl::StatusOr<void*> CudaDevice::NewStream() const {
  // The stream does not wait for the default stream of the trainer.
  constexpr unsigned int kNonBlocking = 1;
  void* stream = nullptr;
  MUSTER_RETURN_IF_ERROR(
      Check(functions_->StreamCreate(&stream, kNonBlocking), "the GPU gives no stream"));
  return stream;
}

void CudaDevice::DeleteStream(void* stream) const {
  functions_->StreamDestroy(stream);
}

absl::StatusOr<CudaDevice::Buffer> CudaDevice::NewBuffer(size_t bytes) const {
  Buffer buffer{.bytes = bytes};
  void* host = nullptr;
  MUSTER_RETURN_IF_ERROR(Check(functions_->MemAllocHost(&host, bytes),
                               fmt::format("{} bytes of host memory cannot be pinned", bytes)));
  buffer.host = static_cast<std::byte*>(host);
  const absl::Status status = Check(functions_->MemAlloc(&buffer.device, bytes),
                                    fmt::format("the GPU has no {} bytes of memory", bytes));
  if (!status.ok()) {
    functions_->MemFreeHost(host);
    return status;
  }
  return buffer;
}

void CudaDevice::DeleteBuffer(const Buffer& buffer) const {
  functions_->MemFree(buffer.device);
  functions_->MemFreeHost(buffer.host);
}

absl::Status CudaDevice::CopyToDevice(const Buffer& buffer, size_t bytes, void* stream) const {
  return Check(functions_->MemcpyHtoDAsync(buffer.device, buffer.host, bytes, stream),
               "gradients cannot be copied to the GPU");
}

absl::Status CudaDevice::CopyToHost(const Buffer& buffer, size_t bytes, void* stream) const {
  return Check(functions_->MemcpyDtoHAsync(buffer.host, buffer.device, bytes, stream),
               "a sum cannot be copied from the GPU");
}

absl::StatusOr<bool> CudaDevice::IsDone(void* stream) const {
  const int result = functions_->StreamQuery(stream);
  if (result == kNotReady) return false;
  MUSTER_RETURN_IF_ERROR(Check(result, "the GPU has failed"));
  return true;
}

}  // namespace muster::collectives
