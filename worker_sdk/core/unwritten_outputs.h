#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "base/clock.h"
#include "base/status.h"
#include "base/text.h"

namespace muster::sdk {

/// Why this worker cannot write outputs of predictions now, for the master: the last write failed
/// because the place is away or full, or a write hangs. Pure; not thread-safe.
class UnwrittenOutputs {
 public:
  /// A write hangs if it takes longer than this, and than its bytes take at kBytesPerSecond.
  static constexpr std::chrono::seconds kHangsAfter{3};
  static constexpr uint64_t kBytesPerSecond = 4 << 20;
  static constexpr size_t kTextBytesMax = 4'000;

  /// A thread begins to write an object of so many bytes. Returns what End takes.
  uint64_t Begin(std::string object, uint64_t bytes, TimePoint now) {
    const TimePoint hangs_at = now + kHangsAfter + std::chrono::seconds(bytes / kBytesPerSecond);
    writes_.try_emplace(++newest_, Write{std::move(object), hangs_at});
    return newest_;
  }
  /// It is over. kUnavailable: the place cannot be written now. Other errors say nothing about
  /// that.
  void End(uint64_t write, const absl::Status& status) {
    writes_.erase(write);
    if (status.ok()) error_.clear();
    if (absl::IsUnavailable(status)) error_ = ValidUtf8(Message(status), kTextBytesMax);
  }
  /// The last write that ended has failed, and the place is to blame.
  bool failed() const { return !error_.empty(); }
  /// For the master. Empty: outputs can be written, as far as is known.
  std::string Text(TimePoint now) const {
    if (failed()) return error_;
    for (const auto& [id, write] : writes_) {
      if (now < write.hangs_at) continue;
      return ValidUtf8("writing " + write.object + " does not come to an end", kTextBytesMax);
    }
    return {};
  }

 private:
  struct Write {
    std::string object;
    TimePoint hangs_at;
  };
  std::map<uint64_t, Write> writes_;  // under way
  uint64_t newest_ = 0;
  std::string error_;
};

}  // namespace muster::sdk
