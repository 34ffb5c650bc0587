#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/words/types.h"

namespace muster::sdk {

/// A kind of objects that the trainer makes itself.
struct ObjectFormat {
  /// Of the object's name, with its dot; see ShardOutput::AddPiece.
  std::string suffix;
  /// Makes the object from what the minibatches gave out, in their order.
  std::function<absl::StatusOr<std::string>(std::span<const std::string_view> pieces)> join;
};

/// What a trainer gives out for one shard of a predict dataset: bytes, rows of float32, or pieces
/// of an object that it joins itself. Not thread-safe.
class ShardOutput {
 public:
  /// Of one shard. All of it is in memory until the shard is done.
  static constexpr uint64_t kBytesMax = uint64_t{256} << 20;

  /// Each appends, unless the result says why not.
  std::optional<std::string> AddBytes(std::string_view bytes);
  /// `values`: [n, columns], row-major. `columns` is at least 1, and divides their number.
  std::optional<std::string> AddRows(std::span<const float> values, uint64_t columns);
  /// The suffix is a dot and 1 to 15 lower-case letters or digits, the same for all pieces. The
  /// `join` of the first one counts.
  std::optional<std::string> AddPiece(std::string_view bytes, const ObjectFormat& format);

  /// The trainer has given out something, be it nothing.
  bool given() const { return kind_ != Kind::kNone; }
  /// The name of the object of a shard: "DATASET-00000012.npy" if it has rows, ".out" if bytes,
  /// or the suffix of the pieces. Sorted, the names are in the order of the shards.
  std::string NameOf(std::string_view dataset, ShardIndex shard) const;
  /// The object: the bytes one after the other, a NumPy array [rows, columns] of float32, or what
  /// `join` makes of the pieces. Errors are those of `join`.
  absl::StatusOr<std::string> Object() const;

 private:
  enum class Kind : uint8_t { kNone, kBytes, kRows, kPieces };
  std::optional<std::string> Add(Kind kind, std::string_view bytes);

  Kind kind_ = Kind::kNone;
  uint64_t columns_ = 0;
  ObjectFormat format_;  // of pieces
  std::string data_;
  std::vector<size_t> piece_ends_;  // in data_
};

}  // namespace muster::sdk
