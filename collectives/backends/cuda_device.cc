#include "collectives/backends/cuda_device.h"

#include <fmt/format.h>

#include "base/status.h"
#include "collectives/backends/dynamic_library.h"

namespace muster::collectives {
namespace {

constexpr int kSuccess = 0;
constexpr int kNotReady = 600;
/// A stream that is being captured into a CUDA graph, perhaps by another thread, forbids calls that
/// may wait, unless the calling thread says that they are none of the graph's business.
constexpr int kRelaxed = 2;
constexpr std::string_view kNoCopyTo = "gradients cannot be copied to the GPU";
constexpr std::string_view kNoCopyFrom = "a sum cannot be copied from the GPU";

}  // namespace

/// The functions of CUDA's driver interface (https://docs.nvidia.com/cuda/cuda-driver-api), by
/// their names without the prefix "cu". A result is 0, or an error.
struct CudaDevice::Functions {
  int (*Init)(unsigned int flags) = nullptr;
  int (*DeviceGet)(int* device, int ordinal) = nullptr;
  int (*DevicePrimaryCtxRetain)(void** context, int device) = nullptr;
  int (*DevicePrimaryCtxRelease)(int device) = nullptr;
  int (*CtxSetCurrent)(void* context) = nullptr;
  int (*ThreadExchangeStreamCaptureMode)(int* mode) = nullptr;
  int (*StreamCreate)(void** stream, unsigned int flags) = nullptr;
  int (*StreamDestroy)(void* stream) = nullptr;
  int (*StreamQuery)(void* stream) = nullptr;
  int (*MemAlloc)(uint64_t* address, size_t bytes) = nullptr;
  int (*MemFree)(uint64_t address) = nullptr;
  int (*MemAllocHost)(void** memory, size_t bytes) = nullptr;
  int (*MemFreeHost)(void* memory) = nullptr;
  int (*MemcpyHtoDAsync)(uint64_t to, const void* from, size_t bytes, void* stream) = nullptr;
  int (*MemcpyDtoHAsync)(void* to, uint64_t from, size_t bytes, void* stream) = nullptr;
  int (*CtxPushCurrent)(void* context) = nullptr;
  int (*CtxPopCurrent)(void** context) = nullptr;
  int (*MemsetD8Async)(uint64_t to, unsigned char value, size_t bytes, void* stream) = nullptr;
  int (*StreamSynchronize)(void* stream) = nullptr;
  int (*MemcpyDtoH)(void* to, uint64_t from, size_t bytes) = nullptr;
  int (*EventCreate)(void** event, unsigned int flags) = nullptr;
  int (*EventDestroy)(void* event) = nullptr;
  int (*EventSynchronize)(void* event) = nullptr;
  int (*EventRecord)(void* event, void* stream) = nullptr;
  int (*StreamWaitEvent)(void* stream, void* event, unsigned int flags) = nullptr;
  int (*ModuleLoadData)(void** module, const void* image) = nullptr;
  int (*ModuleGetFunction)(void** function, void* module, const char* name) = nullptr;
  int (*LaunchKernel)(void* function, unsigned int blocks_x, unsigned int blocks_y,
                      unsigned int blocks_z, unsigned int threads_x, unsigned int threads_y,
                      unsigned int threads_z, unsigned int shared_bytes, void* stream,
                      void** parameters, void** extra) = nullptr;
  int (*GetErrorString)(int error, const char** text) = nullptr;

  absl::Status FindAll(const DynamicLibrary& library) {
    MUSTER_RETURN_IF_ERROR(library.Find("cuInit", &Init));
    MUSTER_RETURN_IF_ERROR(library.Find("cuDeviceGet", &DeviceGet));
    MUSTER_RETURN_IF_ERROR(library.Find("cuDevicePrimaryCtxRetain", &DevicePrimaryCtxRetain));
    MUSTER_RETURN_IF_ERROR(library.Find("cuDevicePrimaryCtxRelease_v2", &DevicePrimaryCtxRelease));
    MUSTER_RETURN_IF_ERROR(library.Find("cuCtxSetCurrent", &CtxSetCurrent));
    MUSTER_RETURN_IF_ERROR(
        library.Find("cuThreadExchangeStreamCaptureMode", &ThreadExchangeStreamCaptureMode));
    MUSTER_RETURN_IF_ERROR(library.Find("cuStreamCreate", &StreamCreate));
    MUSTER_RETURN_IF_ERROR(library.Find("cuStreamDestroy_v2", &StreamDestroy));
    MUSTER_RETURN_IF_ERROR(library.Find("cuStreamQuery", &StreamQuery));
    MUSTER_RETURN_IF_ERROR(library.Find("cuMemAlloc_v2", &MemAlloc));
    MUSTER_RETURN_IF_ERROR(library.Find("cuMemFree_v2", &MemFree));
    MUSTER_RETURN_IF_ERROR(library.Find("cuMemAllocHost_v2", &MemAllocHost));
    MUSTER_RETURN_IF_ERROR(library.Find("cuMemFreeHost", &MemFreeHost));
    MUSTER_RETURN_IF_ERROR(library.Find("cuMemcpyHtoDAsync_v2", &MemcpyHtoDAsync));
    MUSTER_RETURN_IF_ERROR(library.Find("cuMemcpyDtoHAsync_v2", &MemcpyDtoHAsync));
    MUSTER_RETURN_IF_ERROR(library.Find("cuCtxPushCurrent_v2", &CtxPushCurrent));
    MUSTER_RETURN_IF_ERROR(library.Find("cuCtxPopCurrent_v2", &CtxPopCurrent));
    MUSTER_RETURN_IF_ERROR(library.Find("cuMemsetD8Async", &MemsetD8Async));
    MUSTER_RETURN_IF_ERROR(library.Find("cuStreamSynchronize", &StreamSynchronize));
    MUSTER_RETURN_IF_ERROR(library.Find("cuMemcpyDtoH_v2", &MemcpyDtoH));
    MUSTER_RETURN_IF_ERROR(library.Find("cuEventCreate", &EventCreate));
    MUSTER_RETURN_IF_ERROR(library.Find("cuEventDestroy_v2", &EventDestroy));
    MUSTER_RETURN_IF_ERROR(library.Find("cuEventSynchronize", &EventSynchronize));
    MUSTER_RETURN_IF_ERROR(library.Find("cuEventRecord", &EventRecord));
    MUSTER_RETURN_IF_ERROR(library.Find("cuStreamWaitEvent", &StreamWaitEvent));
    MUSTER_RETURN_IF_ERROR(library.Find("cuModuleLoadData", &ModuleLoadData));
    MUSTER_RETURN_IF_ERROR(library.Find("cuModuleGetFunction", &ModuleGetFunction));
    MUSTER_RETURN_IF_ERROR(library.Find("cuLaunchKernel", &LaunchKernel));
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
  int mode = kRelaxed;
  functions_->ThreadExchangeStreamCaptureMode(&mode);
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
  return Check(functions_->MemcpyHtoDAsync(buffer.device, buffer.host, bytes, stream), kNoCopyTo);
}

absl::Status CudaDevice::CopyToHost(const Buffer& buffer, size_t bytes, void* stream) const {
  return Check(functions_->MemcpyDtoHAsync(buffer.host, buffer.device, bytes, stream), kNoCopyFrom);
}

absl::StatusOr<bool> CudaDevice::IsDone(void* stream) const {
  const int result = functions_->StreamQuery(stream);
  if (result == kNotReady) return false;
  MUSTER_RETURN_IF_ERROR(Check(result, "the GPU has failed"));
  return true;
}

CudaDevice::Borrowed::Borrowed(const CudaDevice* device)
    : device_(device),
      status_(device->Check(device->functions_->CtxPushCurrent(device->context_),
                            "the GPU cannot be used by this thread")),
      capture_mode_(kRelaxed) {
  device_->functions_->ThreadExchangeStreamCaptureMode(&capture_mode_);
}

CudaDevice::Borrowed::~Borrowed() {
  void* context = nullptr;
  device_->functions_->ThreadExchangeStreamCaptureMode(&capture_mode_);
  if (status_.ok()) device_->functions_->CtxPopCurrent(&context);
}

absl::StatusOr<uint64_t> CudaDevice::NewMemory(size_t bytes) const {
  uint64_t address = 0;
  MUSTER_RETURN_IF_ERROR(Check(functions_->MemAlloc(&address, bytes),
                               fmt::format("the GPU has no {} bytes of memory", bytes)));
  return address;
}

void CudaDevice::DeleteMemory(uint64_t address) const {
  functions_->MemFree(address);
}

absl::Status CudaDevice::Fill(uint64_t address, uint8_t value, size_t bytes, void* stream) const {
  return Check(functions_->MemsetD8Async(address, value, bytes, stream),
               "memory of the GPU cannot be filled");
}

absl::Status CudaDevice::CopyToPinned(std::byte* to, uint64_t from, size_t bytes,
                                      void* stream) const {
  return Check(functions_->MemcpyDtoHAsync(to, from, bytes, stream), kNoCopyFrom);
}

absl::Status CudaDevice::CopyNow(std::span<std::byte> to, uint64_t from) const {
  return Check(functions_->MemcpyDtoH(to.data(), from, to.size()), kNoCopyFrom);
}

absl::Status CudaDevice::CopyNow(uint64_t to, std::span<const std::byte> from) const {
  // cuMemcpyHtoD returns when the GPU may still read a copy that the driver has made.
  MUSTER_ASSIGN_OR_RETURN(void* const stream, NewStream());
  absl::Status status =
      Check(functions_->MemcpyHtoDAsync(to, from.data(), from.size(), stream), kNoCopyTo);
  if (status.ok()) status = Check(functions_->StreamSynchronize(stream), kNoCopyTo);
  DeleteStream(stream);
  return status;
}

absl::StatusOr<void*> CudaDevice::NewEvent() const {
  constexpr unsigned int kNoTiming = 2;
  void* event = nullptr;
  MUSTER_RETURN_IF_ERROR(
      Check(functions_->EventCreate(&event, kNoTiming), "the GPU gives no event"));
  return event;
}

void CudaDevice::DeleteEvent(void* event) const {
  functions_->EventDestroy(event);
}

absl::Status CudaDevice::Record(void* event, void* stream) const {
  return Check(functions_->EventRecord(event, stream), "the stream takes no event");
}

absl::Status CudaDevice::WaitFor(void* event, void* stream) const {
  return Check(functions_->StreamWaitEvent(stream, event, 0), "the stream waits for no event");
}

absl::Status CudaDevice::Await(void* event) const {
  return Check(functions_->EventSynchronize(event), "the GPU has failed");
}

absl::StatusOr<void*> CudaDevice::LoadModule(const char* ptx) const {
  void* module = nullptr;
  MUSTER_RETURN_IF_ERROR(Check(functions_->ModuleLoadData(&module, ptx),
                               "CUDA's driver does not compile Muster's functions for the GPU"));
  return module;
}

absl::StatusOr<void*> CudaDevice::FindFunction(void* module, const char* name) const {
  void* function = nullptr;
  MUSTER_RETURN_IF_ERROR(Check(functions_->ModuleGetFunction(&function, module, name),
                               fmt::format("the GPU has no function {}", name)));
  return function;
}

absl::Status CudaDevice::Launch(void* function, uint32_t blocks, uint32_t threads, void* stream,
                                void** parameters) const {
  return Check(functions_->LaunchKernel(function, blocks, 1, 1, threads, 1, 1, 0, stream,
                                        parameters, nullptr),
               "the GPU takes no work");
}

}  // namespace muster::collectives
