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

namespace muster {

/// How a dataset was cut when it was indexed.
struct IndexParameters {
  uint32_t minibatch_size = 0;
  uint32_t minibatches_per_shard = 0;
  bool has_header = false;
  friend bool operator==(const IndexParameters&, const IndexParameters&) = default;
};

/// A dataset's index on disk: sources with their pins, and where every shard begins. Written once,
/// then mapped: opening one of a million shards takes milliseconds, and its pages belong to the
/// page cache. README.md has the format. Immutable after Open, so thread-safe.
class IndexFile {
 public:
  struct Source {
    std::string_view path;  // when it was indexed
    SourcePin pin;
    uint64_t record_count = 0;
    uint64_t first_shard = 0;
    uint64_t shard_count = 0;
  };

  /// Writes the file whole or not at all. `sources` were indexed with records_per_shard =
  /// minibatch_size * minibatches_per_shard.
  static absl::Status Write(const std::string& path, const IndexParameters& parameters,
                            const std::vector<SourceIndex>& sources);
  /// Maps and verifies the file. kNotFound: there is none. kDataLoss: it is damaged or of another
  /// format version (index again).
  static absl::StatusOr<IndexFile> Open(const std::string& path);

  const IndexParameters& parameters() const { return parameters_; }
  const std::vector<Source>& sources() const { return sources_; }
  /// Bytes [begin, end) of the shard with this number, which is in `source`.
  struct Bytes {
    uint64_t begin = 0;
    uint64_t end = 0;
  };
  Bytes BytesOf(uint32_t source, uint64_t shard_number) const;

 private:
  explicit IndexFile(MappedFile file) : file_(std::move(file)) {}
  absl::Status Parse(const std::string& path);

  MappedFile file_;
  IndexParameters parameters_;
  std::vector<Source> sources_;
  std::span<const uint64_t> starts_;  // [shards]
};

}  // namespace muster
