#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "proto/messages/control.h"
#include "proto/messages/group_control.h"
#include "proto/wire/frame.h"
#include "worker_sdk/core/part_sender.h"

/// What happens to messages between two processes: the data plane's frames, and in some seeds the
/// encodings of both planes. A message that does not survive its encoding aborts.
namespace muster::sim {

/// A pull or a push as it arrives at a lane.
struct DataMessage {
  /// Absent: a pull.
  std::optional<wire::PushIdentity> push;
  wire::Parts parts;
  std::vector<uint64_t> keys;
  std::vector<float> values;
};
struct DataReply {
  std::vector<wire::PartReply> parts;
  std::string text;
  std::shared_ptr<const float[]> rows;
  std::vector<uint64_t> versions;  // of a pull
};

/// What worker_sdk/net makes of a request.
DataMessage MessageOf(const sdk::SendRequest& request);

DataMessage ThroughWire(const DataMessage& message);
DataReply ThroughWire(const DataReply& reply, bool push);
WorkerExchangeRequest ThroughWire(const WorkerExchangeRequest& request);
WorkerExchangeReply ThroughWire(const WorkerExchangeReply& reply);
GroupExchangeRequest ThroughWire(const GroupExchangeRequest& request);
GroupExchangeReply ThroughWire(const GroupExchangeReply& reply);
ServerExchangeRequest ThroughWire(const ServerExchangeRequest& request);
ServerExchangeReply ThroughWire(const ServerExchangeReply& reply);

/// What the master's shell fills in of a shard of files: here a file of one record. Trainers of the
/// simulation read nothing; it is there to be encoded and decoded.
void FillWork(ShardWork* work);

}  // namespace muster::sim
