#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace muster {

/// The state of a job, for everybody who asks. Journal and wire have the numbers, documents the
/// words.
enum class JobState : uint8_t {
  kUnknown = 0,  // the master has not answered yet
  kRunning = 1,
  kDraining = 2,
  kDrained = 3,
  kSucceeded = 4,
  kFailed = 5,
  kCancelled = 6,
  kStopped = 7,  // no master says it: the run was stopped or killed, as its state directory shows
};
/// "running", "drained", ...
std::string_view ToString(JobState state);
/// Every word, by number.
std::span<const std::string_view> WordsOf(JobState state);

/// Nothing more will happen in this run.
constexpr bool IsTerminal(JobState state) {
  return state >= JobState::kDrained;
}

}  // namespace muster
