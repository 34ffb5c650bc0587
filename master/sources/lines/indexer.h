#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "master/sources/lines/parallel.h"
#include "sharding/lines/line_index.h"
#include "sharding/lines/source_pin.h"

namespace muster {

struct IndexProgress {
  uint64_t bytes_done = 0;
  uint64_t bytes_total = 0;
};
/// Called now and then, on the thread that asked for the work.
using IndexProgressFn = std::function<void(const IndexProgress&)>;

struct SourceIndex {
  std::string path;
  SourcePin pin;
  LineIndex lines;
  uint64_t header = 0;  // a hash of the first line; 0: it is no header
};

struct IndexOptions {
  HeaderLine header = HeaderLine::kNone;
  uint32_t stride = 1;  // LineIndex::starts
  /// 0: one per processor.
  uint32_t threads = 0;
  uint32_t chunk_bytes = uint32_t{4} << 20;  // at most kScanChunkBytesMax
  AliveFn alive = {};
};

/// Scans the files once, in parallel over files and over chunks of one file, and pins them. Memory
/// is bounded by the threads and O(records / stride). Errors name the file, and are those of the
/// first bad file in order whatever the threads do; a file that changes meanwhile is kAborted.
/// `progress` may be empty.
absl::StatusOr<std::vector<SourceIndex>> IndexFiles(const std::vector<std::string>& paths,
                                                    const IndexOptions& options,
                                                    const IndexProgressFn& progress);

/// The pins of the files, in order, made in parallel.
std::vector<absl::StatusOr<SourcePin>> PinFiles(const std::vector<std::string>& paths,
                                                uint32_t threads, const AliveFn& alive = {});

}  // namespace muster
