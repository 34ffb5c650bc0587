#pragma once

#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/messages/worker_control.h"
#include "proto/messages/worker_hello.h"
#include "worker_sdk/readers/shard_reader.h"

namespace muster::sdk {

/// The readers of a session, one for each kind of source. Thread-safe.
class Readers {
 public:
  /// `job` is the master's answer to Hello.
  explicit Readers(const HelloResponse& job);

  /// The reader for the shard. It lives as long as this object. kFailedPrecondition if there is
  /// none for its kind.
  absl::StatusOr<ShardReader*> Of(const ShardWork& work) const;
  /// Announces shards, of all kinds, to their readers. See ShardReader::Expect.
  void Expect(std::span<const ShardWork> works) const;

 private:
  /// The readers, in the order of the table of kinds.
  std::vector<std::unique_ptr<ShardReader>> readers_;
};

}  // namespace muster::sdk
