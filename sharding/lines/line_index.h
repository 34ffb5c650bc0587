#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

/// From the bytes of a line-based file to the byte offset of every k-th record, so that shards are
/// read without scanning. A record is a line; its end is '\n' (a '\r' before it is the reader's to
/// strip). A last line without a newline is a record, and so is an empty line. The empty text after
/// the last newline is not.
namespace muster {

/// A longer line (with its end) is an error, because it is more likely a wrong file than a record.
/// docs/job-file.md and muster/minibatch.h mention this limit.
inline constexpr uint64_t kRecordBytesMax = uint64_t{16} << 20;
/// Longest span that ScanChunk takes.
inline constexpr uint64_t kScanChunkBytesMax = kRecordBytesMax;

/// Where lines end within one chunk of a file.
struct ChunkScan {
  uint64_t begin = 0;  // offset of the chunk in the file
  uint32_t bytes = 0;
  /// Offsets just behind each '\n', relative to `begin`, ascending.
  std::vector<uint32_t> line_ends;
};

/// Scans bytes [begin, begin + bytes.size()) of a file. Chunks of one file can be scanned in
/// parallel and in any order. `bytes` is not longer than kScanChunkBytesMax.
ChunkScan ScanChunk(uint64_t begin, std::string_view bytes);

/// Says if the first line of a file is a record.
enum class HeaderLine : uint8_t { kNone, kPresent };

/// The index of a file after all its chunks are merged.
struct LineIndex {
  uint64_t file_bytes = 0;
  uint64_t record_count = 0;  // header not counted
  /// Offset of record i * stride, for every i with i * stride < record_count: where the i-th shard
  /// of the file begins. It ends where the next begins, the last one at file_bytes.
  std::vector<uint64_t> starts;
};

/// Merges the chunks of one file, in file order, into its index. Memory is O(records / stride). Not
/// thread-safe.
class LineIndexBuilder {
 public:
  /// `path` is for messages. `stride` is the number of records per shard, > 0.
  LineIndexBuilder(std::string path, HeaderLine header, uint32_t stride);

  /// Requires that `chunk` begins where the one before ended (the first at 0). kInvalidArgument
  /// names file and line of a record longer than kRecordBytesMax; the builder is then useless.
  absl::Status Append(const ChunkScan& chunk);
  /// Ends the file after the last chunk.
  absl::StatusOr<LineIndex> Finish();

 private:
  /// Lines begin at `line_start_` and, after each of `ends`, at that offset: takes the samples.
  void TakeSamples(const ChunkScan& chunk);
  absl::Status CheckLength(uint64_t line_end) const;

  std::string path_;
  uint64_t stride_;
  uint64_t header_lines_;
  uint64_t line_start_ = 0;  // of the line that has not ended yet
  uint64_t lines_ended_ = 0;
  LineIndex index_;
};

}  // namespace muster
