#include "kafka/producer.h"

#include <fmt/format.h>

#include "base/status.h"
#include "kafka/internal/client.h"

namespace muster::kafka {
namespace {

using internal::Client;
using internal::ToStatus;

constexpr int kFlushPollMs = 100;
constexpr std::chrono::milliseconds kFullMax{10'000};

class ProducerImpl final : public Producer {
 public:
  explicit ProducerImpl(std::unique_ptr<Client> client) : client_(std::move(client)) {}

  absl::Status Send(const Message& message) override {
    rd_kafka_headers_t* headers = rd_kafka_headers_new(message.headers.size());
    for (const auto& [name, value] : message.headers) {
      rd_kafka_header_add(headers, name.data(), static_cast<ssize_t>(name.size()), value.data(),
                          static_cast<ssize_t>(value.size()));
    }
    const std::string topic(message.topic);
    const std::string_view value = message.value.value_or(std::string_view());
    const std::string_view key = message.key.value_or(std::string_view());
    for (std::chrono::milliseconds waited{0};; waited += std::chrono::milliseconds(kFlushPollMs)) {
      const rd_kafka_resp_err_t error = rd_kafka_producev(
          client_->get(), RD_KAFKA_V_TOPIC(topic.c_str()),
          RD_KAFKA_V_PARTITION(message.partition.value_or(RD_KAFKA_PARTITION_UA)),
          RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
          RD_KAFKA_V_VALUE(message.value.has_value() ? const_cast<char*>(value.data()) : nullptr,
                           value.size()),
          RD_KAFKA_V_KEY(message.key.has_value() ? key.data() : nullptr, key.size()),
          RD_KAFKA_V_HEADERS(headers), RD_KAFKA_V_END);
      if (error == RD_KAFKA_RESP_ERR_NO_ERROR)
        return absl::OkStatus();  // librdkafka owns the headers now
      const bool full = error == RD_KAFKA_RESP_ERR__QUEUE_FULL && waited < kFullMax;
      if (full) {
        rd_kafka_poll(client_->get(), kFlushPollMs);
        continue;
      }
      rd_kafka_headers_destroy(headers);
      return ToStatus(error, fmt::format("topic '{}'", topic));
    }
  }

  absl::Status Flush(std::chrono::milliseconds timeout) override {
    for (; rd_kafka_outq_len(client_->get()) > 0 && timeout.count() > 0;
         timeout -= std::chrono::milliseconds(kFlushPollMs)) {
      rd_kafka_poll(client_->get(), kFlushPollMs);
    }
    rd_kafka_poll(client_->get(), 0);
    MUSTER_RETURN_IF_ERROR(client_->TakeDeliveryFailure());
    if (rd_kafka_outq_len(client_->get()) == 0) return absl::OkStatus();
    return absl::UnavailableError(fmt::format(
        "the brokers did not accept {} records in time{}{}", rd_kafka_outq_len(client_->get()),
        client_->last_error().empty() ? "" : ": ", client_->last_error()));
  }

 private:
  const std::unique_ptr<Client> client_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Producer>> Producer::Open(const ClientConfig& config) {
  MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<Client> client,
                          Client::Open(RD_KAFKA_PRODUCER, config,
                                       // There is no limit here, because the brokers know theirs
                                       // and refuse larger records.
                                       {{"message.max.bytes", "1000000000"},
                                        // This timeout ends before the caller's, because "no such
                                        // topic" is more useful than a timeout.
                                        {"topic.metadata.propagation.max.ms", "5000"}},
                                       {{"enable.idempotence", "true"}}));
  return std::make_unique<ProducerImpl>(std::move(client));
}

}  // namespace muster::kafka
