#include "collectives/reducer.h"

#include <fmt/format.h>

#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "base/words/limits.h"
#include "collectives/internal/backend_thread.h"
#include "collectives/internal/listener_state.h"
#include "collectives/internal/reducer_state.h"

namespace muster::collectives {
namespace {

bool Overlap(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.data() < b.data() + b.size() && b.data() < a.data() + a.size();
}

absl::Status CheckArguments(uint32_t bucket, GroupDtype dtype, std::span<const std::byte> in,
                            std::span<const std::byte> out) {
  const std::optional<SumType> type = SumTypeOf(dtype);
  if (!type.has_value()) {
    return absl::InvalidArgumentError(
        fmt::format("elements of type {} are not summed", static_cast<int>(dtype)));
  }
  const size_t each = ElementBytes(*type);
  const auto aligned = [each](const std::byte* data) {
    return reinterpret_cast<uintptr_t>(data) % each == 0;
  };
  if (bucket >= most::kGroupTensors || in.size() != out.size() || in.size() % each != 0 ||
      in.size() > kPayloadBytesMax || !aligned(in.data()) || !aligned(out.data()) ||
      Overlap(in, out)) {
    return absl::InvalidArgumentError(fmt::format(
        "bucket {} has {} bytes, and its sum {}: they must be the same number of aligned elements "
        "of {} bytes, in different memory, and bucket numbers are below {}",
        bucket, in.size(), out.size(), each, most::kGroupTensors));
  }
  return absl::OkStatus();
}

}  // namespace

struct Reducer::State {
  std::shared_ptr<internal::ListenerState> listener;
  std::shared_ptr<internal::ReducerState> inside;
  std::shared_ptr<Backend> backend;
  uint32_t buckets = 0;
  std::chrono::milliseconds patience{0};
  std::shared_ptr<internal::BackendThread> sums;  // absent: the ring adds
  bool ended = false;                             // by End

  void StartBackend(Backend::Place place) {
    sums = internal::BackendThread::Start(
        {.backend = backend,
         .place = place,
         .buckets = buckets,
         // The ring tells the members the id of their communicator. Steps begin at 1.
         .exchange =
             [listener = listener, inside = inside](std::span<const std::byte> in,
                                                    std::span<std::byte> out,
                                                    std::function<void(absl::Status)> done) {
               listener->Post([inside, in, out, done = std::move(done)] {
                 inside->Add(StepNumber(0), 0, SumType::kInt64, in, out,
                             [done](const absl::Status& status, uint32_t) { done(status); });
               });
             },
         .post = [listener =
                      listener](std::function<void()> task) { listener->Post(std::move(task)); }});
  }
};

std::unique_ptr<Reducer> Reducer::Start(ReducerOptions options, OnFailed on_failed) {
  const std::shared_ptr<internal::ListenerState> listener = options.listener->state_;
  const Backend::Place place{options.rank, static_cast<uint32_t>(options.members.size())};
  std::shared_ptr<Backend> backend = options.backend;
  const uint32_t buckets = options.buckets;
  const std::chrono::milliseconds patience = options.backend_patience;
  const bool alone = place.members == 1 && !options.on_device;
  auto inside =
      std::make_shared<internal::ReducerState>(std::move(options), listener, std::move(on_failed));
  listener->Post([inside] { inside->Start(); });
  auto state =
      std::make_shared<State>(listener, std::move(inside), std::move(backend), buckets, patience);
  if (state->backend != nullptr && !alone) state->StartBackend(place);
  return std::unique_ptr<Reducer>(new Reducer(std::move(state)));
}

Reducer::~Reducer() {
  if (!state_->ended) {
    if (state_->sums != nullptr) state_->sums->Abort();
    state_->listener->RunAndWait([this] { state_->inside->Abort(); });
  }
  const std::chrono::milliseconds patience{state_->ended ? 0 : state_->patience.count()};
  if (state_->sums == nullptr || state_->sums->Finish(patience)) return;
  Log(LogLevel::kWarning,
      "{} does not end an aborted sum; its thread and its memory are left to "
      "themselves",
      state_->backend->name());
}

void Reducer::Sum(StepNumber step, uint32_t bucket, GroupDtype dtype, std::span<const std::byte> in,
                  std::span<std::byte> out, Done done) {
  const absl::Status wrong = CheckArguments(bucket, dtype, in, out);
  if (wrong.ok() && state_->sums != nullptr) {
    return state_->sums->Add(step, bucket, *SumTypeOf(dtype), in, out, std::move(done));
  }
  state_->listener->Post([inside = state_->inside, step, bucket, dtype, in, out, wrong,
                          done = std::move(done)]() mutable {
    if (!wrong.ok()) return done(wrong, 0);
    inside->Add(step, bucket, *SumTypeOf(dtype), in, out, std::move(done));
  });
}

void Reducer::SumOnDevice(StepNumber step, uint32_t bucket, DeviceSum sum, Done done) {
  MUSTER_CHECK(state_->sums != nullptr);
  state_->sums->AddOnDevice(step, bucket, std::move(sum), std::move(done));
}

void Reducer::Abort() {
  if (state_->sums != nullptr) state_->sums->Abort();
  state_->listener->Post([inside = state_->inside] { inside->Abort(); });
}

void Reducer::End(std::function<void()> ended) {
  if (state_->sums != nullptr) state_->sums->Abort();
  state_->listener->Post([state = state_, ended = std::move(ended)] {
    state->inside->Abort();
    const auto over = std::make_shared<std::function<void()>>([state, ended] {
      state->ended = true;
      ended();
    });
    if (state->sums == nullptr) return (*over)();
    const auto timer = std::make_shared<boost::asio::steady_timer>(*state->listener->io());
    const auto once = [over, timer] {
      if (!*over) return;
      timer->cancel();
      std::exchange(*over, nullptr)();
    };
    timer->expires_after(state->patience);
    timer->async_wait([once](const boost::system::error_code& error) {
      if (!error) once();
    });
    state->sums->OnEnded([listener = state->listener, once] { listener->Post(once); });
  });
}

}  // namespace muster::collectives
