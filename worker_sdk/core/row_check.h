#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/check.h"
#include "proto/wire/checksum_stream.h"

namespace muster::sdk {

/// Checks the rows of an answer while they are copied, which reads them once instead of twice. Rows
/// that turn out to be damaged have been copied by then, so the answer that brought them must not
/// count. A value; not thread-safe.
class RowCheck {
 public:
  /// `sum` has what the checksum covers before `values`; `expected` is the sum after them. Both
  /// `sum` and `values` must outlive this.
  RowCheck(wire::ChecksumStream* sum, uint64_t expected, std::span<const std::byte> values)
      : sum_(sum), expected_(expected), left_(values) {}

  /// Adds the values up to `end`, which is within them and not before an earlier one.
  void UpTo(const void* end) {
    const auto bytes = static_cast<size_t>(static_cast<const std::byte*>(end) - left_.data());
    MUSTER_CHECK(bytes <= left_.size());
    sum_->Add(left_.first(bytes));
    left_ = left_.subspan(bytes);
  }
  /// Adds what is left. False: something is damaged.
  bool Finish() {
    UpTo(left_.data() + left_.size());
    return sum_->value() == expected_;
  }

 private:
  wire::ChecksumStream* sum_;
  uint64_t expected_;
  std::span<const std::byte> left_;
};

}  // namespace muster::sdk
