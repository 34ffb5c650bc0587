// A shared library that stands in for both NCCL and CUDA's driver, with the binary interface that
// Muster loads, so that everything around a GPU is tested without one. Device memory is memory of
// the host. Members may be threads or processes: they share a file that the id of the communicator
// names. A call that would wait on a GPU is a task of a stream, and makes progress when the stream
// or the communicator is asked for its state.
#include "tests/collectives/backends/fake_gpu.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <bit>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/collectives/backends/fake_kernels.h"
#include "tests/collectives/backends/fake_stream.h"

namespace {

using muster::MutexLock;
using muster::collectives::testing::fake_streams;
using muster::collectives::testing::FakeEvent;
using muster::collectives::testing::FakeGpuFault;
using muster::collectives::testing::FakeKernel;
using muster::collectives::testing::FakeKernels;
using muster::collectives::testing::FakeLaunch;
using muster::collectives::testing::FakeStream;

constexpr int kReady = 0;
constexpr int kNotReady = 600;
constexpr int kNoDevice = 101;
constexpr int kInvalid = 218;
constexpr int kNotFound = 500;
constexpr int kLaunchFailed = 719;
constexpr int kSuccess = 0;
constexpr int kInvalidUsage = 5;
constexpr int kRemoteError = 6;
constexpr int kInProgress = 7;
constexpr int kMembersMax = 64;
constexpr size_t kSlotBytes = size_t{1} << 20;

std::atomic<int> fault{static_cast<int>(FakeGpuFault::kNone)};
std::atomic<int> version{22'203};
std::atomic<int> communicators{0};
std::atomic<int> sums{0};
std::atomic<int> pinned{0};

bool Has(FakeGpuFault which) {
  return fault.load() == static_cast<int>(which);
}

struct Id {
  char text[128];
};

/// What the members of a communicator share.
struct Shared {
  std::atomic<uint32_t> joined;
  std::atomic<uint64_t> arrived;  // members that have written their piece, over all pieces
  std::atomic<uint64_t> finished;
  alignas(64) std::byte slots[kMembersMax][kSlotBytes];
};

struct Communicator {
  int members = 0;
  int rank = 0;
  std::string file;
  Shared* shared = nullptr;
  uint64_t pieces = 0;  // begun
  std::atomic<bool> aborted{false};
  bool connected = false;

  Communicator() { ++communicators; }
  ~Communicator() {
    if (shared != nullptr) ::munmap(shared, sizeof(Shared));
    ::unlink(file.c_str());
    --communicators;
  }
};

/// NCCL's handle.
struct Handle {
  std::shared_ptr<Communicator> communicator;
};

/// CUDA's handle; none: the default stream.
struct StreamHandle {
  std::shared_ptr<FakeStream> stream = std::make_shared<FakeStream>();
};
const std::shared_ptr<FakeStream>& StreamOf(void* handle) {
  static StreamHandle standard;
  return handle == nullptr ? standard.stream : static_cast<StreamHandle*>(handle)->stream;
}
void Push(void* stream, std::function<void()> task) {
  const MutexLock lock(&fake_streams);
  StreamOf(stream)->Push([task = std::move(task)] {
    task();
    return true;
  });
}

float FromBfloat16(uint16_t value) {
  return std::bit_cast<float>(static_cast<uint32_t>(value) << 16);
}

template <typename T, typename Add>
void AddAll(const Communicator& in, size_t bytes, std::byte* to, Add add) {
  std::vector<T> sum(bytes / sizeof(T)), more(bytes / sizeof(T));
  std::memcpy(sum.data(), in.shared->slots[0], bytes);
  for (int rank = 1; rank < in.members; ++rank) {
    std::memcpy(more.data(), in.shared->slots[rank], bytes);
    for (size_t i = 0; i < sum.size(); ++i) sum[i] = add(sum[i], more[i]);
  }
  std::memcpy(to, sum.data(), bytes);
}

void Reduce(const Communicator& in, int type, size_t bytes, std::byte* to) {
  if (type == 4) {
    AddAll<uint64_t>(in, bytes, to, [](uint64_t a, uint64_t b) { return a + b; });
  } else if (type == 7) {
    AddAll<float>(in, bytes, to, [](float a, float b) { return a + b; });
  } else {
    AddAll<uint16_t>(in, bytes, to, [](uint16_t a, uint16_t b) {
      const auto bits = std::bit_cast<uint32_t>(FromBfloat16(a) + FromBfloat16(b));
      return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
    });
  }
}

/// Adds a piece of a bucket, in three phases.
std::function<bool()> PieceTask(std::shared_ptr<Communicator> in, uint64_t piece, int type,
                                const std::byte* from, std::byte* to, size_t bytes) {
  return [in = std::move(in), piece, type, from, to, bytes, phase = 0]() mutable {
    if (in->aborted.load()) return true;
    if (Has(FakeGpuFault::kSumHangs)) return false;
    const auto count = static_cast<uint64_t>(in->members);
    if (phase == 0) {
      if (in->shared->finished.load() < count * piece) return false;
      std::memcpy(in->shared->slots[in->rank], from, bytes);
      ++in->shared->arrived;
      phase = 1;
    }
    if (phase == 1) {
      if (in->shared->arrived.load() < count * (piece + 1)) return false;
      Reduce(*in, type, bytes, to);
      ++in->shared->finished;
      phase = 2;
    }
    return true;
  };
}

/// Calls that may wait are errors for every thread that has not said otherwise.
constexpr int kCaptureUnsupported = 900;
constexpr int kRelaxed = 2;
thread_local int capture_mode = 0;
bool ForbiddenByCapture() {
  return Has(FakeGpuFault::kCapturing) && capture_mode != kRelaxed;
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

// ---- what tests set ----

void fake_gpu_set_fault(int which) {
  fault.store(which);
}
void fake_gpu_set_version(int number) {
  version.store(number);
}
int fake_gpu_communicators() {
  return communicators.load();
}
int fake_gpu_sums() {
  return sums.load();
}
int fake_gpu_pinned() {
  return pinned.load();
}

// ---- CUDA's driver ----

int cuInit(unsigned int) {
  return kReady;
}
int cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return ordinal >= 0 && ordinal < 4 ? kReady : kNoDevice;
}
int cuDevicePrimaryCtxRetain(void** context, int) {
  static int one;
  *context = &one;
  return kReady;
}
int cuDevicePrimaryCtxRelease_v2(int) {
  return kReady;
}
int cuCtxSetCurrent(void*) {
  return kReady;
}
int cuCtxPushCurrent_v2(void*) {
  return kReady;
}
int cuCtxPopCurrent_v2(void**) {
  return kReady;
}
int cuThreadExchangeStreamCaptureMode(int* mode) {
  std::swap(*mode, capture_mode);
  return kReady;
}
int cuStreamCreate(void** stream, unsigned int) {
  *stream = new StreamHandle;
  return kReady;
}
int cuStreamDestroy_v2(void* stream) {
  const MutexLock lock(&fake_streams);
  delete static_cast<StreamHandle*>(stream);
  return kReady;
}
int cuStreamQuery(void* stream) {
  const MutexLock lock(&fake_streams);
  return StreamOf(stream)->Advance() ? kReady : kNotReady;
}
int cuStreamSynchronize(void* stream) {
  while (cuStreamQuery(stream) != kReady) std::this_thread::yield();
  return kReady;
}
int cuStreamWaitEvent(void* stream, void* event, unsigned int) {
  const MutexLock lock(&fake_streams);
  static_cast<FakeEvent*>(event)->Wait(StreamOf(stream).get());
  return kReady;
}
int cuEventCreate(void** event, unsigned int) {
  *event = new FakeEvent;
  return kReady;
}
int cuEventDestroy_v2(void* event) {
  delete static_cast<FakeEvent*>(event);
  return kReady;
}
int cuEventSynchronize(void* event) {
  while (true) {
    const MutexLock lock(&fake_streams);
    if (static_cast<FakeEvent*>(event)->Advance()) return kReady;
  }
}
int cuEventRecord(void* event, void* stream) {
  const MutexLock lock(&fake_streams);
  static_cast<FakeEvent*>(event)->Record(StreamOf(stream));
  return kReady;
}
int cuModuleLoadData(void** module, const void* image) {
  *module = const_cast<void*>(image);
  return std::strstr(static_cast<const char*>(image), ".version") == nullptr ? kInvalid : kReady;
}
int cuModuleGetFunction(void** function, void* module, const char* name) {
  const std::string entry = std::string(".visible .entry ") + name + "(";
  const auto found = FakeKernels().find(name);
  if (found == FakeKernels().end() ||
      std::strstr(static_cast<const char*>(module), entry.c_str()) == nullptr) {
    return kNotFound;
  }
  *function = const_cast<FakeKernel*>(&found->second);
  return kReady;
}
int cuLaunchKernel(void* function, unsigned int blocks, unsigned int, unsigned int,
                   unsigned int threads, unsigned int, unsigned int, unsigned int, void* stream,
                   void** parameters, void**) {
  if (Has(FakeGpuFault::kLaunchFails)) return kLaunchFailed;
  Push(stream, (*static_cast<FakeKernel*>(function))(parameters, uint64_t{blocks} * threads));
  return kReady;
}
int cuMemAlloc_v2(uint64_t* address, size_t bytes) {
  if (Has(FakeGpuFault::kNoMemory)) return 2;
  if (ForbiddenByCapture()) return kCaptureUnsupported;
  *address = reinterpret_cast<uint64_t>(std::aligned_alloc(64, (bytes + 63) / 64 * 64));
  return kReady;
}
int cuMemFree_v2(uint64_t address) {
  cuStreamSynchronize(nullptr);
  std::free(reinterpret_cast<void*>(address));
  return kReady;
}
int cuMemAllocHost_v2(void** memory, size_t bytes) {
  if (ForbiddenByCapture()) return kCaptureUnsupported;
  ++pinned;
  *memory = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
  return kReady;
}
int cuMemFreeHost(void* memory) {
  std::free(memory);
  return kReady;
}
int cuMemcpyHtoDAsync_v2(uint64_t to, const void* from, size_t bytes, void* stream) {
  Push(stream, [=] { std::memcpy(reinterpret_cast<void*>(to), from, bytes); });
  return kReady;
}
int cuMemcpyDtoHAsync_v2(void* to, uint64_t from, size_t bytes, void* stream) {
  Push(stream, [=] { std::memcpy(to, reinterpret_cast<const void*>(from), bytes); });
  return kReady;
}
int cuMemcpyDtoH_v2(void* to, uint64_t from, size_t bytes) {
  std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
  return kReady;
}
int cuMemsetD8Async(uint64_t to, unsigned char value, size_t bytes, void* stream) {
  Push(stream, [=] { std::memset(reinterpret_cast<void*>(to), value, bytes); });
  return kReady;
}
int cuGetErrorString(int error, const char** text) {
  *text = error == 2 ? "out of memory" : error == kNoDevice ? "invalid device ordinal" : "an error";
  return kReady;
}

// ---- NCCL ----

int ncclGetVersion(int* number) {
  *number = version.load();
  return kSuccess;
}
int ncclGetUniqueId(Id* id) {
  static std::atomic<uint32_t> count{0};
  const char* const folder = std::getenv("TMPDIR");
  const std::string text = std::string(folder == nullptr ? "/tmp" : folder) + "/muster-fake-gpu-" +
                           std::to_string(::getpid()) + "-" + std::to_string(count++) + "-" +
                           std::to_string(std::random_device()());
  std::memset(id->text, 0, sizeof(id->text));
  std::memcpy(id->text, text.data(), std::min(text.size(), sizeof(id->text) - 1));
  return kSuccess;
}
int ncclCommInitRankConfig(Handle** comm, int members, Id id, int rank, void*) {
  if (Has(FakeGpuFault::kConnectFails)) return kRemoteError;
  if (Has(FakeGpuFault::kInvalidUsage)) return kInvalidUsage;
  auto made = std::make_shared<Communicator>();
  made->members = members;
  made->rank = rank;
  made->file = id.text;
  const int fd = ::open(id.text, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0 || ::ftruncate(fd, sizeof(Shared)) != 0) return 2;
  void* const memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  ::close(fd);
  if (memory == MAP_FAILED) return 2;
  made->shared = static_cast<Shared*>(memory);
  ++made->shared->joined;
  *comm = new Handle{std::move(made)};
  return kInProgress;
}
int ncclCommGetAsyncError(Handle* comm, int* state) {
  Communicator& in = *comm->communicator;
  if (Has(FakeGpuFault::kFailsLater)) {
    *state = kRemoteError;
    return kSuccess;
  }
  in.connected = in.connected || in.shared->joined.load() >= static_cast<uint32_t>(in.members);
  *state = in.connected ? kSuccess : kInProgress;
  return kSuccess;
}
int ncclAllReduce(const void* from, void* to, size_t count, int type, int, Handle* comm,
                  void* stream) {
  const auto* source = static_cast<const std::byte*>(from);
  auto* target = static_cast<std::byte*>(to);
  ++sums;
  const size_t bytes = count * (type == 4 ? 8 : type == 7 ? 4 : 2);
  for (size_t begin = 0; begin < bytes; begin += kSlotBytes) {
    const MutexLock lock(&fake_streams);
    StreamOf(stream)->Push(PieceTask(comm->communicator, comm->communicator->pieces++, type,
                                     source + begin, target + begin,
                                     std::min(kSlotBytes, bytes - begin)));
  }
  return kSuccess;
}
int ncclCommAbort(Handle* comm) {
  comm->communicator->aborted.store(true);
  while (Has(FakeGpuFault::kAbortHangs)) std::this_thread::yield();
  delete comm;
  return kSuccess;
}
const char* ncclGetErrorString(int result) {
  return result == kRemoteError ? "remote process exited or there was a network error" : "an error";
}
const char* ncclGetLastError(Handle*) {
  return "of the fake";
}

}  // extern "C"
#pragma GCC visibility pop
