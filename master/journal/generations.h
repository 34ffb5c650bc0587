#pragma once

#include <cstdint>
#include <string>
#include <vector>

/// The decisions of the generation fence (docs/protocol.md, section 11): which journal a starting
/// master continues, and which older ones it may remove. Pure.
namespace muster {

/// One journal of a job, as a starting master finds it. Generation 1 is in the journal's folder
/// itself, generation N in its folder "gN".
struct Generation {
  uint64_t number = 1;
  /// It can be continued: it was not left in the middle of being copied.
  bool complete = false;
  /// Some master has claimed it. Versions before the fence did not.
  bool owned = false;
  /// A newer generation has closed it, so its master may acknowledge nothing any more.
  bool closed = false;
  /// The machine on which its masters run; empty: not known.
  std::string machine;
  /// Who starts its masters (StartFacts::starter).
  std::string starter;
};

struct StartFacts {
  /// By number, ascending. Generation 1 is there if its folder has anything of a journal.
  std::vector<Generation> generations;
  /// This machine; empty: not known.
  std::string machine;
  /// Of the `muster run` that starts this master; empty: not known.
  std::string starter;
  /// Some process holds the lock of the newest complete generation.
  bool locked = false;
  /// Those from whom the job was taken, and whose generations were removed since.
  std::vector<std::string> superseded;
  /// The user, or the cluster, says that the master of this generation is to lose the job.
  bool take_over = false;
};

struct StartChoice {
  enum class What : uint8_t {
    kAdopt,       // claim generation 1, which has no owner
    kContinue,    // open the journal of `number`: its masters ran here, and are dead
    kTakeOver,    // claim `number`, close all older ones, then copy `source` (0: nothing)
    kLocked,      // refused: another master runs here
    kSuperseded,  // refused: the job was taken from the `muster run` that starts this master
  } what = What::kAdopt;
  uint64_t number = 1;
  uint64_t source = 0;
  bool operator==(const StartChoice&) const = default;
};
StartChoice ChooseGeneration(const StartFacts& facts);

/// The newest complete one, which readers read; null: there is none.
const Generation* NewestComplete(const std::vector<Generation>& generations);

/// The generations that the master of `own`, copied from `source`, removes: all before `source`,
/// and unfinished copies after it. Nobody needs them, because their masters are closed, and
/// `source` stays until the next one.
std::vector<uint64_t> Removable(const std::vector<Generation>& generations, uint64_t own,
                                uint64_t source);

}  // namespace muster
