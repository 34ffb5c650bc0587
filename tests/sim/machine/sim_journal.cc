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

StartChoice SimJournal::Choose(const std::string& machine) const {
  StartFacts facts{.machine = machine};
  for (const auto& [number, part] : generations_) facts.generations.push_back(part.facts);
  return ChooseGeneration(facts);
}

void SimJournal::Make(const StartChoice& choice, const std::string& machine) {
  const bool added =
      generations_
          .emplace(choice.number, Part{.facts = {.number = choice.number, .machine = machine}})
          .second;
  MUSTER_CHECK(added);
  if (choice.what != StartChoice::What::kAdopt) return;
  generations_[choice.number].facts.complete = true;
  generations_[choice.number].facts.owned = true;
}

void SimJournal::CloseBefore(uint64_t number) {
  for (auto& [older, part] : generations_) part.facts.closed |= older < number;
}

void SimJournal::Copy(uint64_t number) {
  Part& part = generations_.at(number);
  part.state = state();
  part.facts.complete = true;
  part.facts.owned = true;
}

const SimJournal::Part* SimJournal::NewestPart() const {
  const Part* newest = nullptr;
  for (const auto& [number, part] : generations_) {
    if (part.facts.complete) newest = &part;
  }
  return newest;
}

const DurableState& SimJournal::state() const {
  const Part* const newest = NewestPart();
  return newest == nullptr ? nothing_ : newest->state;
}

void SimJournal::Keep(uint64_t number) {
  Part& part = generations_.at(number);
  for (Mutation& mutation : *part.pending) {
    if (options_.codec) mutation = ThroughStore(mutation);
    Apply(mutation, &part.state);
  }
  const std::vector<Mutation> kept = *std::exchange(part.pending, std::nullopt);
  // What a master writes after its journal was copied does not exist for anybody.
  if (&part == NewestPart()) on_durable_(kept, part.state);
}

void SimJournal::Write(const ProcessRef& process, uint64_t number, std::vector<Mutation> mutations,
                       std::function<void(absl::Status)> done) {
  Part& part = generations_.at(number);
  MUSTER_CHECK(!part.pending.has_value());
  if (std::exchange(part.writer, process->id) != process->id) {
    part.rng = Rng(HashWords(seed_, part.writer));
  }
  part.pending = std::move(mutations);
  const bool fails = std::exchange(fail_next_, false);
  const nanoseconds delay{20'000 +
                          part.rng.Below(static_cast<uint64_t>(options_.sync_max.count()) + 1)};
  if (strike_ != nullptr) {
    scheduler_->After(delay / 2, nullptr, std::exchange(strike_, nullptr));
  }
  scheduler_->After(delay, process, [this, number, fails, done = std::move(done)] {
    if (fails) {
      Drop(number);
      return done(absl::ResourceExhaustedError("the journal cannot be written"));
    }
    Keep(number);
    done(absl::OkStatus());
  });
}

SimJournal::Found SimJournal::Drop(uint64_t number) {
  Part& part = generations_.at(number);
  if (!part.pending.has_value()) return Found::kNothing;
  if (part.rng.Below(2) == 0) {
    Keep(number);
    return Found::kFound;
  }
  part.pending.reset();
  return Found::kLost;
}

SimJournal::Found SimJournal::WriterDied(const ProcessRef& process) {
  Found found = Found::kNothing;
  for (auto& [number, part] : generations_) {
    if (process != nullptr && part.writer != process->id) continue;
    const Found here = Drop(number);
    if (here != Found::kNothing) found = here;
  }
  return found;
}

}  // namespace muster::sim
