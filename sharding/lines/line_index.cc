#include "sharding/lines/line_index.h"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/status.h"

namespace muster {

ChunkScan ScanChunk(uint64_t begin, std::string_view bytes) {
  MUSTER_CHECK(bytes.size() <= kScanChunkBytesMax);
  ChunkScan chunk{.begin = begin, .bytes = static_cast<uint32_t>(bytes.size()), .line_ends = {}};
  chunk.line_ends.reserve(bytes.size() / 64);
  const char* const first = bytes.data();
  const char* const last = first + bytes.size();
  for (const char* at = first; at < last;) {
    const void* newline = std::memchr(at, '\n', static_cast<size_t>(last - at));
    if (newline == nullptr) break;
    at = static_cast<const char*>(newline) + 1;
    chunk.line_ends.push_back(static_cast<uint32_t>(at - first));
  }
  return chunk;
}

LineIndexBuilder::LineIndexBuilder(std::string path, HeaderLine header, uint32_t stride)
    : path_(std::move(path)),
      stride_(stride),
      header_lines_(header == HeaderLine::kPresent ? 1 : 0) {
  MUSTER_CHECK(stride > 0);
}

absl::Status LineIndexBuilder::CheckLength(uint64_t line_end) const {
  if (line_end - line_start_ <= kRecordBytesMax) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format(
      "{}:{}: the line is longer than the {} MiB that one record may have; is it a text file with "
      "one record per line? Cut the line, or take the file out of spec.datasets[].files",
      path_, lines_ended_ + 1, kRecordBytesMax >> 20));
}

absl::Status LineIndexBuilder::Append(const ChunkScan& chunk) {
  MUSTER_CHECK(chunk.begin == index_.file_bytes);
  index_.file_bytes += chunk.bytes;
  if (chunk.line_ends.empty()) return CheckLength(index_.file_bytes);
  // A line inside the chunk cannot be too long, because the chunk is not longer than the limit. So
  // only the first line, which began before the chunk, must be checked.
  MUSTER_RETURN_IF_ERROR(CheckLength(chunk.begin + chunk.line_ends.front()));
  TakeSamples(chunk);
  lines_ended_ += chunk.line_ends.size();
  line_start_ = chunk.begin + chunk.line_ends.back();
  return absl::OkStatus();
}

void LineIndexBuilder::TakeSamples(const ChunkScan& chunk) {
  // Line i of the ones that end in this chunk has number lines_ended_ + i and begins at the end of
  // line i - 1. The next sample wanted is the line with this number:
  uint64_t wanted = index_.starts.size() * stride_ + header_lines_;
  for (; wanted - lines_ended_ < chunk.line_ends.size(); wanted += stride_) {
    const uint64_t i = wanted - lines_ended_;
    index_.starts.push_back(i == 0 ? line_start_ : chunk.begin + chunk.line_ends[i - 1]);
  }
}

absl::StatusOr<LineIndex> LineIndexBuilder::Finish() {
  MUSTER_RETURN_IF_ERROR(CheckLength(index_.file_bytes));
  if (line_start_ < index_.file_bytes) {
    // The last line has no newline: it ends with the file.
    const uint64_t wanted = index_.starts.size() * stride_ + header_lines_;
    if (wanted == lines_ended_) index_.starts.push_back(line_start_);
    ++lines_ended_;
  }
  index_.record_count = lines_ended_ > header_lines_ ? lines_ended_ - header_lines_ : 0;
  return std::move(index_);
}

}  // namespace muster
