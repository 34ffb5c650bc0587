#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "base/clock.h"
#include "master/group_core/group_books.h"
#include "master/group_core/step_work.h"

namespace muster {

/// Sums that stand still: every member adds or has added, nobody votes, and nothing arrives
/// anywhere in the group. Nobody accuses anybody then: a connection that carries nothing any more
/// breaks late. So the members connect anew, in another attempt. (A process whose loop hangs makes
/// no calls, and is put out as one that is silent.)
///
/// Owns what the members reported last, and since when. Pure; not thread-safe.
class Stalls {
 public:
  /// Nothing has moved for so many times the silence limit. Each stall of a step doubles it: where
  /// a library adds, a large bucket is one move.
  static constexpr int kSilences = 6;
  static constexpr uint32_t kDoublingsMax = 6;

  /// Both outlive it.
  Stalls(GroupBooks* books, const StepInWork* work) : books_(books), work_(work) {}

  /// They stand still: since when. None: they get on, or there are none, or it is too early.
  std::optional<std::string> Judge(TimePoint now);
  /// A step has happened.
  void OnStep() { in_a_row_ = 0; }

 private:
  /// Of each member, by rank.
  using Picture = std::vector<std::tuple<AttemptNumber, MemberPhase, uint64_t>>;
  /// Empty: not all members add.
  Picture Look() const;
  std::chrono::milliseconds Limit() const;

  GroupBooks* const books_;
  const StepInWork* const work_;
  Picture seen_;
  TimePoint since_;
  uint32_t in_a_row_ = 0;
};

}  // namespace muster
