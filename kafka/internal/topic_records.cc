#include "kafka/internal/topic_records.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace muster::kafka::internal {

void TopicRecords::Add(MessageRef message) {
  const rd_kafka_message_t& from = *message;
  Record record;
  record.has_value = from.payload != nullptr;
  if (record.has_value) record.value = {static_cast<const char*>(from.payload), from.len};
  if (from.key != nullptr) {
    record.key = std::string_view(static_cast<const char*>(from.key), from.key_len);
  }
  const int64_t timestamp = rd_kafka_message_timestamp(&from, nullptr);
  record.timestamp = std::chrono::milliseconds(std::max<int64_t>(timestamp, 0));
  record.offset = static_cast<uint64_t>(from.offset);
  bytes_ += from.len + from.key_len;
  records_.push_back(record);
  messages_.push_back(std::move(message));
}

std::vector<Records::Header> TopicRecords::HeadersOf(size_t index) const {
  std::vector<Header> headers;
  rd_kafka_headers_t* list = nullptr;
  if (rd_kafka_message_headers(messages_[index].get(), &list) != RD_KAFKA_RESP_ERR_NO_ERROR) {
    return headers;
  }
  const char* name = nullptr;
  const void* value = nullptr;
  size_t bytes = 0;
  for (size_t i = 0;
       rd_kafka_header_get_all(list, i, &name, &value, &bytes) == RD_KAFKA_RESP_ERR_NO_ERROR; ++i) {
    headers.emplace_back(name, std::nullopt);
    if (value != nullptr) {
      headers.back().second = std::string_view(static_cast<const char*>(value), bytes);
    }
  }
  return headers;
}

}  // namespace muster::kafka::internal
