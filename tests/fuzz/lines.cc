#include <algorithm>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/status.h"
#include "sharding/lines/file_start.h"
#include "sharding/lines/line_index.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/targets.h"
#include "worker_sdk/readers/lines/lines_reader.h"

namespace muster::testing {
namespace {

/// The lines of a file, found the slow way.
std::vector<std::string_view> LinesOf(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

LineIndex IndexOf(std::string_view text, HeaderLine header, uint32_t stride, size_t chunk_bytes) {
  LineIndexBuilder builder("lines", header, stride);
  for (size_t begin = 0; begin < text.size(); begin += chunk_bytes) {
    MUSTER_CHECK(builder.Append(ScanChunk(begin, text.substr(begin, chunk_bytes))).ok());
  }
  return builder.Finish().value();
}

/// One shard as a worker reads it: the records that the slow way has found, in another order.
void CheckShard(std::string_view text, const LineIndex& index, size_t shard, uint32_t stride,
                uint64_t seed, const std::vector<std::string_view>& lines) {
  ShardWork work;
  SourceRun run;
  run.first_record = shard * stride;
  run.record_count =
      static_cast<uint32_t>(std::min<uint64_t>(stride, index.record_count - run.first_record));
  run.byte_begin = index.starts[shard];
  run.byte_end = shard + 1 < index.starts.size() ? index.starts[shard + 1] : text.size();
  const std::string_view bytes = text.substr(run.byte_begin, run.byte_end - run.byte_begin);
  // Some of its bytes may be of no interest.
  run.records_before = static_cast<uint32_t>(seed % run.record_count);
  run.record_count -= run.records_before;
  run.records_behind = static_cast<uint32_t>(seed / 16 % run.record_count);
  run.record_count -= run.records_behind;
  run.first_record += run.records_before;
  work.files = {{.path = "lines", .bytes = text.size()}};
  work.runs = {run};
  work.record_count = run.record_count;
  work.minibatch_size = 3;
  work.minibatch_count = 1 + (run.record_count - 1) / 3;
  work.shuffle_seed = seed;
  const auto cut = sdk::CutRecords(work, {bytes.begin(), bytes.end()});
  MUSTER_CHECK_MSG(cut.ok(), cut.status().ToString());
  MUSTER_CHECK(cut->records.size() == work.record_count);
  std::vector<bool> seen(work.record_count);
  for (size_t i = 0; i < cut->records.size(); ++i) {
    MUSTER_CHECK(!seen[cut->order[i]]);
    seen[cut->order[i]] = true;
    std::string_view expected = lines[run.first_record + cut->order[i]];
    if (run.byte_begin == 0 && run.records_before == 0 && cut->order[i] == 0)
      expected = WithoutMark(expected);
    if (expected.ends_with('\r')) expected.remove_suffix(1);
    MUSTER_CHECK(cut->records[i] == expected);
  }
}

}  // namespace

void FuzzLines(std::string_view bytes) {
  FuzzInput input(bytes);
  const HeaderLine header = input.Number(1) % 2 == 0 ? HeaderLine::kNone : HeaderLine::kPresent;
  const auto stride = static_cast<uint32_t>(1 + input.Number(1) % 16);
  const size_t chunk_bytes = 1 + input.Number(1);
  const uint64_t seed = input.Number(1);
  const std::string_view text = input.rest();

  const LineIndex index = IndexOf(text, header, stride, chunk_bytes);
  std::vector<std::string_view> lines = LinesOf(text);
  if (header == HeaderLine::kPresent && !lines.empty()) lines.erase(lines.begin());
  MUSTER_CHECK(index.file_bytes == text.size());
  MUSTER_CHECK(index.record_count == lines.size());
  MUSTER_CHECK(index.starts.size() == (lines.size() + stride - 1) / stride);
  for (size_t shard = 0; shard < index.starts.size(); ++shard) {
    CheckShard(text, index, shard, stride, seed, lines);
  }
}

}  // namespace muster::testing
