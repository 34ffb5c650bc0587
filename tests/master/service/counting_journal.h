#pragma once

#include <atomic>
#include <span>
#include <string>
#include <utility>

#include "master/journal/journal.h"
#include "tests/support/gate.h"
#include "tests/support/memory_journal.h"

namespace muster::testing {

/// Counts syncs, and can be told to wait in the next one.
class CountingJournal final : public Journal {
 public:
  const std::string& job_id() const override { return memory.job_id(); }
  DurableState TakeState() override { return {}; }
  absl::Status Write(std::span<const Mutation> mutations) override {
    ++writes;
    if (gate != nullptr) {
      entered->Open();
      std::exchange(gate, nullptr)->Wait();
    }
    return memory.Write(mutations);
  }
  absl::Status Look() override {
    ++looks;
    return owned ? absl::OkStatus() : absl::CancelledError("taken over");
  }
  std::atomic<int> looks = 0;
  std::atomic<bool> owned = true;
  std::atomic<int> writes = 0;
  testing::MemoryJournal memory;
  Gate* gate = nullptr;
  Gate* entered = nullptr;
};

}  // namespace muster::testing
