#pragma once

#include <cstdint>
#include <span>
#include <string_view>

/// What a process is in its synchronous group, and what it does. The wire has the numbers,
/// documents the words.
namespace muster {

enum class MemberPhase : uint8_t {
  kIdle = 0,       // has no step to work on
  kLearning = 1,   // copies the state, or applies sums of steps that it missed
  kComputing = 2,  // in the minibatches of a step
  kReducing = 3,   // has computed its minibatches, and adds with the others
  kVoted = 4,      // has the sum
  kApplying = 5,   // the step has happened, and the trainer changes its weights
};

enum class GroupStanding : uint8_t {
  kUnknown = 0,  // the master does not know the process: the next call has an introduction
  kWaiting = 1,  // it has no place now; `waits` says why
  kLearner = 2,  // it gets the state from `source`, and then a place
  kMember = 3,   // it is one of `members`
  kRefused = 4,  // it can never take part (another model); `waits` says why
};

/// "idle", "learning", ...
std::string_view ToString(MemberPhase phase);
/// "unknown", "waiting", ...
std::string_view ToString(GroupStanding standing);
/// Every word, by number.
std::span<const std::string_view> WordsOf(MemberPhase phase);
std::span<const std::string_view> WordsOf(GroupStanding standing);

}  // namespace muster
