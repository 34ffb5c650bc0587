#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/file.h"
#include "master/sources/lines/indexer.h"
#include "proto/messages/shard_work.h"
#include "sharding/shard_layout.h"

namespace muster {

/// How a dataset was cut when it was indexed.
struct IndexParameters {
  uint32_t minibatch_size = 0;
  uint32_t minibatches_per_shard = 0;
  bool has_header = false;
  /// Of so many records, the offset of the first one is kept.
  uint32_t Stride() const {
    return ShardLayout::BlockRecords(minibatch_size, minibatches_per_shard);
  }
  friend bool operator==(const IndexParameters&, const IndexParameters&) = default;
};

/// A dataset's index on disk: sources with their pins, and where every block of records begins.
/// Written once, then mapped: opening one of a million blocks takes milliseconds, and its pages
/// belong to the page cache. README.md has the format. Immutable after Open, so thread-safe.
class IndexFile {
 public:
  struct Source {
    std::string_view path;  // when it was indexed
    SourcePin pin;
    uint64_t record_count = 0;
    uint64_t header = 0;  // DigestOfHeader; 0: it has none
    uint64_t first_start = 0;
    uint64_t start_count = 0;
  };

  /// Writes the file whole or not at all. `sources` were indexed with the stride of
  /// `parameters`.
  static absl::Status Write(const std::string& path, const IndexParameters& parameters,
                            const std::vector<SourceIndex>& sources);
  /// Maps and verifies the file. kNotFound: there is none. kDataLoss: it is damaged (index again).
  /// kFailedPrecondition: a job of an earlier version of Muster made it, and its shards are cut
  /// otherwise.
  static absl::StatusOr<IndexFile> Open(const std::string& path);

  const IndexParameters& parameters() const { return parameters_; }
  const std::vector<Source>& sources() const { return sources_; }
  /// Where the records of a run are. The run's `file` is left to the caller.
  SourceRun Locate(const RecordRun& run) const;
  /// The offsets of a source's blocks.
  std::span<const uint64_t> StartsOf(uint32_t source) const;

 private:
  explicit IndexFile(MappedFile file) : file_(std::move(file)) {}
  absl::Status Parse(const std::string& path);

  MappedFile file_;
  IndexParameters parameters_;
  std::vector<Source> sources_;
  std::span<const uint64_t> starts_;  // of all sources, one after the other
};

}  // namespace muster
