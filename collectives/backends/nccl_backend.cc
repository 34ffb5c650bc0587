#include "collectives/backends/nccl_backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/status.h"
#include "collectives/backends/cuda_device.h"
#include "collectives/backends/dynamic_library.h"
#include "collectives/backends/gpu.h"
#include "collectives/backends/gpu_loops.h"
#include "collectives/backends/nccl_abi.h"

namespace muster::collectives {
namespace {

using std::chrono::steady_clock;

absl::Status FindAll(const DynamicLibrary& library, nccl::Functions* nccl) {
  MUSTER_RETURN_IF_ERROR(library.Find("ncclGetVersion", &nccl->GetVersion));
  MUSTER_RETURN_IF_ERROR(library.Find("ncclGetUniqueId", &nccl->GetUniqueId));
  MUSTER_RETURN_IF_ERROR(library.Find("ncclCommInitRankConfig", &nccl->CommInitRankConfig));
  MUSTER_RETURN_IF_ERROR(library.Find("ncclCommGetAsyncError", &nccl->CommGetAsyncError));
  MUSTER_RETURN_IF_ERROR(library.Find("ncclAllReduce", &nccl->AllReduce));
  MUSTER_RETURN_IF_ERROR(library.Find("ncclCommAbort", &nccl->CommAbort));
  MUSTER_RETURN_IF_ERROR(library.Find("ncclGetErrorString", &nccl->GetErrorString));
  library.Find("ncclGetLastError", &nccl->GetLastError).IgnoreError();
  return absl::OkStatus();
}

constexpr std::string_view kNoBegin = "NCCL does not begin a sum";

uint32_t Folded(uint64_t digest) {
  return static_cast<uint32_t>(digest ^ (digest >> 32));
}

/// The digest that the GPU computes, too.
template <typename T>
uint32_t DigestOfElements(std::span<const std::byte> sum) {
  uint64_t digest = 0;
  T bits;
  for (size_t i = 0; i < sum.size() / sizeof(T); ++i) {
    std::memcpy(&bits, &sum[i * sizeof(T)], sizeof(T));
    digest += gpu::DigestOf(i, bits);
  }
  return Folded(digest);
}
uint32_t DigestOf(SumType type, std::span<const std::byte> sum) {
  switch (type) {
    case SumType::kFloat32:
      return DigestOfElements<uint32_t>(sum);
    case SumType::kBfloat16:
      return DigestOfElements<uint16_t>(sum);
    case SumType::kInt64:
      break;
  }
  return DigestOfElements<uint64_t>(sum);
}

nccl::DataType TypeOf(SumType type) {
  switch (type) {
    case SumType::kFloat32:
      return nccl::kFloat32;
    case SumType::kBfloat16:
      return nccl::kBfloat16;
    case SumType::kInt64:
      break;
  }
  return nccl::kInt64;
}

/// The pause between two looks at something in progress. It is short at first, because sums of
/// small buckets take some 20 us. A thread that waits for long must not use a core.
class Pause {
 public:
  void Wait() {
    constexpr int kSpins = 200;
    if (++looks_ < kSpins) return std::this_thread::yield();
    SleepFor(std::chrono::microseconds(std::min(looks_ - kSpins, 200)));
  }

 private:
  int looks_ = 0;
};

/// The buffer of a communicator that has ended, for the next one: to pin memory takes long, and
/// every attempt of the group has a communicator of its own. Thread-safe.
class SpareBuffer {
 public:
  explicit SpareBuffer(std::shared_ptr<CudaDevice> device) : device_(std::move(device)) {}
  ~SpareBuffer() {
    const CudaDevice::Borrowed borrowed(device_.get());
    const MutexLock lock(&mutex_);
    if (borrowed.status().ok() && buffer_.bytes > 0) device_->DeleteBuffer(buffer_);
  }
  SpareBuffer(const SpareBuffer&) = delete;
  SpareBuffer& operator=(const SpareBuffer&) = delete;

  CudaDevice::Buffer Take() {
    const MutexLock lock(&mutex_);
    return std::exchange(buffer_, {});
  }
  /// The larger one stays. By a thread that uses the device.
  void Put(CudaDevice::Buffer buffer) {
    {
      const MutexLock lock(&mutex_);
      if (buffer.bytes > buffer_.bytes) std::swap(buffer, buffer_);
    }
    if (buffer.bytes > 0) device_->DeleteBuffer(buffer);
  }

 private:
  const std::shared_ptr<CudaDevice> device_;
  Mutex mutex_;
  CudaDevice::Buffer buffer_ MUSTER_GUARDED_BY(mutex_);
};

class NcclCommunicator final : public Communicator {
 public:
  NcclCommunicator(const nccl::Functions* nccl, std::shared_ptr<CudaDevice> device,
                   std::shared_ptr<Gpu> gpu, std::shared_ptr<SpareBuffer> spare,
                   const AbortSignal* signal, std::chrono::milliseconds error_patience)
      : nccl_(nccl),
        device_(std::move(device)),
        gpu_(std::move(gpu)),
        spare_(std::move(spare)),
        signal_(signal),
        error_patience_(error_patience) {}
  /// Other members may be dead, so the communicator is aborted, never destroyed: NCCL's destroy
  /// waits for them. The stream ends after that, so nothing uses the buffer any more.
  ~NcclCommunicator() override {
    if (comm_ != nullptr) nccl_->CommAbort(comm_);
    if (stream_ != nullptr) device_->DeleteStream(stream_);
    spare_->Put(buffer_);
  }
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;

  absl::Status Connect(const nccl::UniqueId& id, Backend::Place place,
                       std::chrono::seconds timeout) {
    MUSTER_RETURN_IF_ERROR(device_->Use());
    MUSTER_ASSIGN_OR_RETURN(stream_, device_->NewStream());
    nccl::Config config;
    const nccl::Result result = nccl_->CommInitRankConfig(
        &comm_, static_cast<int>(place.members), id, static_cast<int>(place.rank), &config);
    members_ = place.members;
    return Judged(
        Await(result, "NCCL does not connect the members", steady_clock::now() + timeout));
  }

  absl::StatusOr<std::span<std::byte>> Buffer(size_t bytes) override {
    if (buffer_.bytes == 0) buffer_ = spare_->Take();
    if (bytes > buffer_.bytes) {
      if (buffer_.bytes > 0) device_->DeleteBuffer(buffer_);
      buffer_ = {};
      MUSTER_ASSIGN_OR_RETURN(buffer_, device_->NewBuffer(bytes));
    }
    return std::span(buffer_.host, bytes);
  }

  absl::Status Sum(SumType type, std::span<std::byte> data) override {
    return Judged(Add(type, data));
  }

  uint32_t Digest(SumType type, std::span<const std::byte> sum) const override {
    return DigestOf(type, sum);
  }

  absl::StatusOr<uint32_t> SumOnDevice(const DeviceSum& sum) override {
    // NCCL may still use this memory after an abort. So it stays as long as the communicator.
    on_device_ = sum;
    uint32_t digest = 0;
    MUSTER_RETURN_IF_ERROR(Judged(AddOnDevice(sum, &digest)));
    on_device_.reset();
    return digest;
  }

 private:
  /// What the GPU says of a bucket: see Gpu::Decode.
  struct Results {
    uint64_t bad = gpu::kNone;
    uint64_t digest = 0;
  };
  absl::Status AddOnDevice(const DeviceSum& sum, uint32_t* digest) {
    GpuBucket& bucket = *sum.bucket;
    const SumType type = bucket.options().type;
    MUSTER_RETURN_IF_ERROR(Buffer(sizeof(Results)).status());
    MUSTER_ASSIGN_OR_RETURN(const uint64_t from, gpu_->Encode(&bucket, stream_));
    // Other members must not get what this type cannot hold.
    MUSTER_ASSIGN_OR_RETURN(Results results, Fetch(Gpu::Bad(bucket), sizeof(uint64_t)));
    MUSTER_RETURN_IF_ERROR(CheckElement(results.bad));
    MUSTER_RETURN_IF_ERROR(
        Await(nccl_->AllReduce(reinterpret_cast<const void*>(from),
                               reinterpret_cast<void*>(sum.encoded->address()),
                               bucket.options().elements, TypeOf(type), nccl::kSum, comm_, stream_),
              kNoBegin, std::nullopt));
    MUSTER_RETURN_IF_ERROR(gpu_->Decode(sum, buffer_.device, stream_));
    MUSTER_ASSIGN_OR_RETURN(results, Fetch(buffer_.device, sizeof(results)));
    *digest = Folded(results.digest);
    return CheckElement(results.bad);
  }

  /// Waits for the stream, and has the first bytes of the results from there.
  absl::StatusOr<Results> Fetch(uint64_t address, size_t bytes) {
    MUSTER_RETURN_IF_ERROR(device_->CopyToPinned(buffer_.host, address, bytes, stream_));
    MUSTER_RETURN_IF_ERROR(AwaitStream());
    Results results;
    std::memcpy(&results, buffer_.host, bytes);
    return results;
  }
  static absl::Status CheckElement(uint64_t bad) {
    if (bad == gpu::kNone) return absl::OkStatus();
    return absl::OutOfRangeError(
        fmt::format("element {} is no number, or too large for the type of the sum", bad));
  }

  absl::Status Add(SumType type, std::span<std::byte> data) {
    auto* const memory = reinterpret_cast<void*>(buffer_.device);
    MUSTER_RETURN_IF_ERROR(device_->CopyToDevice(buffer_, data.size(), stream_));
    MUSTER_RETURN_IF_ERROR(Await(nccl_->AllReduce(memory, memory, data.size() / ElementBytes(type),
                                                  TypeOf(type), nccl::kSum, comm_, stream_),
                                 kNoBegin, std::nullopt));
    MUSTER_RETURN_IF_ERROR(device_->CopyToHost(buffer_, data.size(), stream_));
    return AwaitStream();
  }

  absl::Status AwaitStream() const {
    for (Pause pause;; pause.Wait()) {
      MUSTER_ASSIGN_OR_RETURN(const bool done, device_->IsDone(stream_));
      if (done) return absl::OkStatus();
      MUSTER_RETURN_IF_ERROR(Look("NCCL does not end a sum").status());
    }
  }

  /// An error of NCCL may be the trace of a dead member. Then the attempt soon ends.
  absl::Status Judged(absl::Status status) const {
    if (!absl::IsInternal(status) || members_ == 1) return status;
    Log(LogLevel::kWarning, "{}; if another member has died, the group goes on without it",
        Message(status));
    const auto end = steady_clock::now() + error_patience_;
    for (Pause pause; steady_clock::now() < end; pause.Wait()) {
      if (signal_->aborted()) return OverError();
    }
    return status;
  }
  static absl::Status OverError() { return absl::AbortedError("the attempt of the group is over"); }

  /// kFailedPrecondition: it is the fault of this process.
  absl::Status Error(nccl::Result result, std::string_view what) const {
    const char* const more = nccl_->GetLastError == nullptr ? nullptr : nccl_->GetLastError(comm_);
    const std::string text =
        fmt::format("{}: {}{}{} (NCCL_DEBUG=INFO shows more)", what, nccl_->GetErrorString(result),
                    more == nullptr || *more == '\0' ? "" : ": ", more == nullptr ? "" : more);
    const bool own = result == nccl::kInvalidArgument || result == nccl::kInvalidUsage;
    return own ? absl::FailedPreconditionError(text) : absl::InternalError(text);
  }

  /// kSuccess or kInProgress.
  absl::StatusOr<nccl::Result> Look(std::string_view what) const {
    if (signal_->aborted()) return OverError();
    nccl::Result state = nccl::kSuccess;
    const nccl::Result asked = nccl_->CommGetAsyncError(comm_, &state);
    if (asked != nccl::kSuccess) return Error(asked, what);
    if (state != nccl::kSuccess && state != nccl::kInProgress) return Error(state, what);
    return state;
  }

  /// Waits until the call that gave `result` has taken effect.
  absl::Status Await(nccl::Result result, std::string_view what,
                     std::optional<steady_clock::time_point> end) const {
    if (result != nccl::kSuccess && result != nccl::kInProgress) return Error(result, what);
    for (Pause pause;; pause.Wait()) {
      MUSTER_ASSIGN_OR_RETURN(const nccl::Result state, Look(what));
      if (state == nccl::kSuccess) return absl::OkStatus();
      if (end.has_value() && steady_clock::now() > *end) {
        return absl::DeadlineExceededError(
            fmt::format("{} in time (NCCL_DEBUG=INFO shows more)", what));
      }
    }
  }

  const nccl::Functions* const nccl_;
  const std::shared_ptr<CudaDevice> device_;
  const std::shared_ptr<Gpu> gpu_;
  const std::shared_ptr<SpareBuffer> spare_;
  const AbortSignal* const signal_;
  const std::chrono::milliseconds error_patience_;
  uint32_t members_ = 1;
  nccl::Comm comm_ = nullptr;
  void* stream_ = nullptr;
  CudaDevice::Buffer buffer_;
  std::optional<DeviceSum> on_device_;  // in work
};

class NcclBackend final : public Backend, public std::enable_shared_from_this<NcclBackend> {
 public:
  NcclBackend(NcclOptions options, nccl::Functions nccl, std::shared_ptr<CudaDevice> device)
      : options_(std::move(options)), nccl_(nccl), device_(std::move(device)) {}

  std::string_view name() const override { return "NCCL"; }
  Gpu* device() override { return gpu_.get(); }

  absl::StatusOr<std::vector<std::byte>> NewId() override {
    nccl::UniqueId id;
    const nccl::Result result = nccl_.GetUniqueId(&id);
    if (result != nccl::kSuccess) {
      return absl::InternalError(fmt::format("NCCL makes no id: {} (NCCL_DEBUG=INFO shows more)",
                                             nccl_.GetErrorString(result)));
    }
    const auto bytes = std::as_bytes(std::span(id.internal));
    return std::vector<std::byte>(bytes.begin(), bytes.end());
  }

  absl::StatusOr<std::unique_ptr<Communicator>> Connect(std::span<const std::byte> id, Place place,
                                                        const AbortSignal* signal) override {
    nccl::UniqueId unique;
    if (id.size() != sizeof(unique.internal)) {
      return absl::InvalidArgumentError(
          fmt::format("an id of NCCL has {} bytes, not {}", sizeof(unique.internal), id.size()));
    }
    std::memcpy(unique.internal, id.data(), id.size());
    auto communicator = std::make_unique<NcclCommunicator>(&nccl_, device_, gpu_, spare_, signal,
                                                           options_.error_patience);
    MUSTER_RETURN_IF_ERROR(communicator->Connect(unique, place, options_.connect_timeout));
    return communicator;
  }

 private:
  const NcclOptions options_;
  const nccl::Functions nccl_;
  const std::shared_ptr<CudaDevice> device_;
  const std::shared_ptr<Gpu> gpu_ = std::make_shared<Gpu>(device_);
  const std::shared_ptr<SpareBuffer> spare_ = std::make_shared<SpareBuffer>(device_);
};

}  // namespace

absl::StatusOr<std::shared_ptr<Backend>> OpenNccl(const NcclOptions& options) {
  MUSTER_ASSIGN_OR_RETURN(const DynamicLibrary library, DynamicLibrary::Load(options.library));
  nccl::Functions nccl;
  MUSTER_RETURN_IF_ERROR(FindAll(library, &nccl));
  int version = 0;
  if (nccl.GetVersion(&version) != nccl::kSuccess || version < nccl::kVersionMin) {
    return absl::UnimplementedError(fmt::format("{} is version {} of NCCL, at least {} is needed",
                                                library.path(), version, nccl::kVersionMin));
  }
  MUSTER_ASSIGN_OR_RETURN(std::shared_ptr<CudaDevice> device,
                          CudaDevice::Open(options.cuda, options.device));
  return std::make_shared<NcclBackend>(options, nccl, std::move(device));
}

}  // namespace muster::collectives
