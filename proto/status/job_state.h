#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace muster {

/// The state of a job, as all readers see it. Journal and wire have the numbers, documents the
/// words.
enum class JobState : uint8_t {
  kUnknown = 0,  // the master has not answered yet
  kRunning = 1,
  kDraining = 2,
  kDrained = 3,
  kSucceeded = 4,
  kFailed = 5,
  kCancelled = 6,
  kStopped = 7,  // not from a master: the state directory shows that the run was stopped or killed
};
/// "running", "drained", ...
std::string_view ToString(JobState state);
/// Every word, by number.
std::span<const std::string_view> WordsOf(JobState state);

/// True if nothing more will happen in this run.
constexpr bool IsTerminal(JobState state) {
  return state >= JobState::kDrained;
}

}  // namespace muster
