#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "kafka/internal/client.h"
#include "kafka/range_reader.h"

namespace muster::kafka::internal {

/// The records of a range, as librdkafka's messages.
class TopicRecords final : public Records {
 public:
  /// It holds the client, because a librdkafka client does not end while some of its messages are
  /// held.
  explicit TopicRecords(std::shared_ptr<Client> client) : client_(std::move(client)) {}

  void Add(MessageRef message);
  std::vector<Header> HeadersOf(size_t index) const override;
  uint64_t bytes() const { return bytes_; }

 private:
  const std::shared_ptr<Client> client_;  // destroyed after the messages
  std::vector<MessageRef> messages_;
  uint64_t bytes_ = 0;
};

}  // namespace muster::kafka::internal
