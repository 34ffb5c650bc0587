#include "collectives/backends/nccl_backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/status.h"
#include "collectives/backends/cuda_device.h"
#include "collectives/backends/dynamic_library.h"
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

/// Between two looks at something that is under way: sums of small buckets take some 20 us, and a
/// thread that waits for long must not use a core.
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

class NcclCommunicator final : public Communicator {
 public:
  NcclCommunicator(const nccl::Functions* nccl, std::shared_ptr<CudaDevice> device,
                   const AbortSignal* signal)
      : nccl_(nccl), device_(std::move(device)), signal_(signal) {}
  /// Other members may be dead, so the communicator is aborted, never destroyed: NCCL's destroy
  /// waits for them. The stream ends after that, so nothing uses the buffer any more.
  ~NcclCommunicator() override {
    if (comm_ != nullptr) nccl_->CommAbort(comm_);
    if (stream_ != nullptr) device_->DeleteStream(stream_);
    if (buffer_.bytes > 0) device_->DeleteBuffer(buffer_);
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
    return Await(result, "NCCL does not connect the members", steady_clock::now() + timeout);
  }

  absl::StatusOr<std::span<std::byte>> Buffer(size_t bytes) override {
    if (bytes > buffer_.bytes) {
      if (buffer_.bytes > 0) device_->DeleteBuffer(buffer_);
      buffer_ = {};
      MUSTER_ASSIGN_OR_RETURN(buffer_, device_->NewBuffer(bytes));
    }
    return std::span(buffer_.host, bytes);
  }

  absl::Status Sum(SumType type, std::span<std::byte> data) override {
    auto* const memory = reinterpret_cast<void*>(buffer_.device);
    MUSTER_RETURN_IF_ERROR(device_->CopyToDevice(buffer_, data.size(), stream_));
    MUSTER_RETURN_IF_ERROR(Await(nccl_->AllReduce(memory, memory, data.size() / ElementBytes(type),
                                                  TypeOf(type), nccl::kSum, comm_, stream_),
                                 "NCCL does not begin a sum", std::nullopt));
    MUSTER_RETURN_IF_ERROR(device_->CopyToHost(buffer_, data.size(), stream_));
    for (Pause pause;; pause.Wait()) {
      MUSTER_ASSIGN_OR_RETURN(const bool done, device_->IsDone(stream_));
      if (done) return absl::OkStatus();
      MUSTER_RETURN_IF_ERROR(Look("NCCL does not end a sum").status());
    }
  }

 private:
  absl::Status Error(nccl::Result result, std::string_view what) const {
    const char* const more = nccl_->GetLastError == nullptr ? nullptr : nccl_->GetLastError(comm_);
    return absl::InternalError(
        fmt::format("{}: {}{}{} (NCCL_DEBUG=INFO shows more)", what, nccl_->GetErrorString(result),
                    more == nullptr || *more == '\0' ? "" : ": ", more == nullptr ? "" : more));
  }

  /// kSuccess or kInProgress.
  absl::StatusOr<nccl::Result> Look(std::string_view what) const {
    if (signal_->aborted()) return absl::AbortedError("the attempt of the group is over");
    nccl::Result state = nccl::kSuccess;
    const nccl::Result asked = nccl_->CommGetAsyncError(comm_, &state);
    if (asked != nccl::kSuccess) return Error(asked, what);
    if (state != nccl::kSuccess && state != nccl::kInProgress) return Error(state, what);
    return state;
  }

  /// Until a call that gave `result` has taken effect.
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
  const AbortSignal* const signal_;
  nccl::Comm comm_ = nullptr;
  void* stream_ = nullptr;
  CudaDevice::Buffer buffer_;
};

class NcclBackend final : public Backend, public std::enable_shared_from_this<NcclBackend> {
 public:
  NcclBackend(NcclOptions options, nccl::Functions nccl, std::shared_ptr<CudaDevice> device)
      : options_(std::move(options)), nccl_(nccl), device_(std::move(device)) {}

  std::string_view name() const override { return "NCCL"; }

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
    auto communicator = std::make_unique<NcclCommunicator>(&nccl_, device_, signal);
    MUSTER_RETURN_IF_ERROR(communicator->Connect(unique, place, options_.connect_timeout));
    return communicator;
  }

 private:
  const NcclOptions options_;
  const nccl::Functions nccl_;
  const std::shared_ptr<CudaDevice> device_;
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
