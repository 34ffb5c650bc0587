#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/messages/worker_control.h"
#include "proto/messages/worker_hello.h"
#include "worker_sdk/readers/shard_reader.h"

namespace muster::sdk {

/// The readers of a session, one for each kind of source. Thread-safe.
class Readers {
 public:
  /// `job`: the master's answer to Hello.
  explicit Readers(const HelloResponse& job);

  /// The reader of the shard; lives as long as this. kFailedPrecondition: there is none for its
  /// kind.
  absl::StatusOr<ShardReader*> Of(const ShardWork& work) const;

 private:
  /// In the order of the table of kinds.
  std::vector<std::unique_ptr<ShardReader>> readers_;
};

}  // namespace muster::sdk
