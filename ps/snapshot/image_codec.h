#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ps/engine/partition.h"

/// A partition's image as sorted key-value entries: what a snapshot file holds. Pure.
/// The format is Muster's own and carries a version; docs/export.md is the one for others to read.
///
///   0x00                          header: format, identity, floor, counts of what follows
///   0x01 table:be32               the table's definition, as muster.v1.Table
///   0x02 dataset:be32 epoch:be32 index:be64   bit set of minibatches, u64 little-endian words
///   0x03 table:be32 key:be64      the row: values and slots, float32 little-endian
namespace muster::ps {

/// Which snapshot a file belongs to; in the file's name and in its header.
struct SnapshotIdentity {
  PartitionId partition;
  OwnerEpoch epoch;
  SnapshotNumber number;
  friend bool operator==(const SnapshotIdentity&, const SnapshotIdentity&) = default;
};
/// "partition 3, owner epoch 12, snapshot 1.5".
std::string ToString(const SnapshotIdentity& identity);

using EntrySink = absl::FunctionRef<absl::Status(std::string_view key, std::string_view value)>;

/// Gives the entries to `sink` in ascending order of their keys; stops at its first error.
absl::Status EncodeImage(const SnapshotIdentity& identity, const PartitionImage& image,
                         EntrySink sink);

/// True if, in a sample, at least a quarter of the floats equal the float before them in their row:
/// unused slots, or rows of zeros. Other rows hardly compress, and trying to compress them costs
/// about as much as all other work for their file.
bool HasManyRepeats(const PartitionImage& image);

/// Builds an image from entries in the order of EncodeImage.
class ImageDecoder {
 public:
  /// Errors are kDataLoss and say which entry is wrong.
  absl::Status Add(std::string_view key, std::string_view value);
  /// Returns the image, if all entries that the header announced have arrived. Use the decoder no
  /// more.
  absl::StatusOr<PartitionImage> Finish();
  /// Valid after the first entry.
  const SnapshotIdentity& identity() const { return identity_; }

 private:
  absl::Status AddHeader(std::string_view value);
  absl::Status AddTable(uint32_t id, std::string_view value);
  absl::Status AddWindow(std::string_view key, std::string_view value);
  absl::Status AddRow(uint32_t table, uint64_t key, std::string_view value);

  bool has_header_ = false;
  SnapshotIdentity identity_;
  PartitionImage image_;
  uint32_t tables_ = 0;
  uint64_t window_shards_ = 0;
  uint64_t rows_ = 0;
  uint64_t rows_seen_ = 0;
};

}  // namespace muster::ps
