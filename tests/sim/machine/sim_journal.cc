#include "tests/sim/machine/sim_journal.h"

#include <utility>

#include "base/check.h"
#include "master/journal/record_codec.h"

namespace muster::sim {
namespace {

/// What the store would give back; removals have no value to decode.
Mutation ThroughStore(const Mutation& mutation) {
  const StoreChange change = Encode(mutation);
  if (!change.value.has_value()) return mutation;
  absl::StatusOr<Mutation> decoded = Decode(change.key, *change.value);
  MUSTER_CHECK_MSG(decoded.ok(), decoded.status().ToString());
  return *std::move(decoded);
}

}  // namespace

void SimJournal::Keep() {
  for (Mutation& mutation : *pending_) {
    if (options_.codec) mutation = ThroughStore(mutation);
    Apply(mutation, &state_);
  }
  const std::vector<Mutation> kept = *std::exchange(pending_, std::nullopt);
  on_durable_(kept, state_);
}

void SimJournal::Write(const ProcessRef& process, std::vector<Mutation> mutations,
                       std::function<void(absl::Status)> done) {
  MUSTER_CHECK(!pending_.has_value());
  if (std::exchange(writer_, process->id) != process->id) rng_ = Rng(HashWords(seed_, writer_));
  pending_ = std::move(mutations);
  const bool fails = std::exchange(fail_next_, false);
  const nanoseconds delay{20'000 +
                          rng_.Below(static_cast<uint64_t>(options_.sync_max.count()) + 1)};
  if (strike_ != nullptr) {
    scheduler_->After(delay / 2, nullptr, std::exchange(strike_, nullptr));
  }
  scheduler_->After(delay, process, [this, fails, done = std::move(done)] {
    if (fails) {
      WriterDied();
      return done(absl::ResourceExhaustedError("the journal cannot be written"));
    }
    Keep();
    done(absl::OkStatus());
  });
}

SimJournal::Found SimJournal::WriterDied() {
  if (!pending_.has_value()) return Found::kNothing;
  if (rng_.Below(2) == 0) {
    Keep();
    return Found::kFound;
  }
  pending_.reset();
  return Found::kLost;
}

}  // namespace muster::sim
