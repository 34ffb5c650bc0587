#include "collectives/reducer.h"

#include <fmt/format.h>

#include <cstdint>
#include <utility>

#include "base/words/limits.h"
#include "collectives/internal/hub.h"
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
  std::shared_ptr<internal::Hub> hub;
  std::shared_ptr<internal::ReducerState> inside;
};

std::unique_ptr<Reducer> Reducer::Start(ReducerOptions options, OnFailed on_failed) {
  const std::shared_ptr<internal::Hub> hub = options.listener->hub_;
  auto inside =
      std::make_shared<internal::ReducerState>(std::move(options), hub, std::move(on_failed));
  hub->Post([inside] { inside->Start(); });
  return std::unique_ptr<Reducer>(new Reducer(std::make_shared<State>(hub, std::move(inside))));
}

Reducer::~Reducer() {
  state_->hub->RunAndWait([this] { state_->inside->Abort(); });
}

void Reducer::Sum(StepNumber step, uint32_t bucket, GroupDtype dtype, std::span<const std::byte> in,
                  std::span<std::byte> out, Done done) {
  const absl::Status wrong = CheckArguments(bucket, dtype, in, out);
  state_->hub->Post([inside = state_->inside, step, bucket, dtype, in, out, wrong,
                     done = std::move(done)]() mutable {
    if (!wrong.ok()) return done(wrong, 0);
    inside->Add(step, bucket, *SumTypeOf(dtype), in, out, std::move(done));
  });
}

void Reducer::Abort() {
  state_->hub->Post([inside = state_->inside] { inside->Abort(); });
}

}  // namespace muster::collectives
