#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/words/types.h"

namespace muster::sdk {

/// What a trainer gives out for one shard of a predict dataset: bytes, or rows of float32. Not
/// thread-safe.
class ShardOutput {
 public:
  /// Of one shard. All of it is in memory until the shard is done.
  static constexpr uint64_t kBytesMax = uint64_t{256} << 20;

  /// Each appends, unless the result says why not.
  std::optional<std::string> AddBytes(std::string_view bytes);
  /// `values`: [n, columns], row-major. `columns` is at least 1, and divides their number.
  std::optional<std::string> AddRows(std::span<const float> values, uint64_t columns);

  /// The trainer has given out something, be it nothing.
  bool given() const { return kind_ != Kind::kNone; }
  /// The name of the object of a shard: "DATASET-00000012.npy" if it has rows, ".out" if bytes.
  /// Sorted, the names are in the order of the shards.
  std::string NameOf(std::string_view dataset, ShardIndex shard) const;
  /// The object: the bytes one after the other, or a NumPy array [rows, columns] of float32.
  std::string Object() const;

 private:
  enum class Kind : uint8_t { kNone, kBytes, kRows };
  std::optional<std::string> Add(Kind kind, std::string_view bytes);

  Kind kind_ = Kind::kNone;
  uint64_t columns_ = 0;
  std::string data_;
};

}  // namespace muster::sdk
