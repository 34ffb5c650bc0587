#pragma once

#include <chrono>
#include <cstdint>
#include <limits>

namespace muster {

/// Decides when a node that ended is restarted: the first time at once, then after a delay that
/// doubles with every exit, until there were `crash_loop_exits` exits without progress in between.
/// The delays are those of the job file, so they are not spread. Pure; a value.
class RestartPolicy {
 public:
  struct Options {
    /// This many exits in a row without progress are a crash loop; at least 1.
    uint32_t crash_loop_exits = 5;
    std::chrono::milliseconds backoff_initial{500};
    std::chrono::milliseconds backoff_max{30'000};
  };
  /// The same delays, but without a limit on the number of exits. For exits that are no crash.
  static Options Endless(Options options) {
    options.crash_loop_exits = std::numeric_limits<uint32_t>::max();
    return options;
  }
  enum class Progress : uint8_t { kNone, kMade };
  struct Decision {
    /// True if the node must not be restarted, because the job cannot continue.
    bool crash_loop = false;
    std::chrono::milliseconds delay{0};
    /// Exits in a row without progress. This one is included.
    uint32_t exits = 0;
  };

  /// `exits` in a row without progress were counted before.
  explicit RestartPolicy(const Options& options, uint32_t exits = 0)
      : options_(options), exits_(exits) {}

  /// The node ended. `progress` says whether it made progress since its last start.
  Decision OnExit(Progress progress);
  /// The last counted exit is no failure of the node.
  void Excuse() { exits_ -= exits_ > 0 ? 1 : 0; }
  /// The node made progress, so the next exit counts as the first.
  void OnProgress() { exits_ = 0; }
  /// Exits in a row without progress so far.
  uint32_t exits() const { return exits_; }

 private:
  Options options_;
  uint32_t exits_ = 0;
};

}  // namespace muster
