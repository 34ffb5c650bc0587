#pragma once

#include <span>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "master/journal/journal.h"

namespace muster::testing {

/// Keeps the state in memory; "reopening" it is handing state() to the next core.
class MemoryJournal final : public Journal {
 public:
  MemoryJournal() = default;
  explicit MemoryJournal(DurableState state, std::string job_id = "memory")
      : job_id_(std::move(job_id)), state_(std::move(state)) {}
  const std::string& job_id() const override { return job_id_; }
  DurableState TakeState() override { return state_; }
  absl::Status Write(std::span<const Mutation> mutations) override {
    if (!failure_.ok()) return failure_;
    for (const Mutation& mutation : mutations) Apply(mutation, &state_);
    return absl::OkStatus();
  }
  const DurableState& state() const { return state_; }
  /// Every Write from now on fails with this.
  void FailWith(absl::Status status) { failure_ = std::move(status); }

 private:
  std::string job_id_ = "memory";
  DurableState state_;
  absl::Status failure_;
};

}  // namespace muster::testing
