#include "tests/kafka/mock_cluster.h"

#include <array>
#include <vector>

#include "base/check.h"

namespace muster::kafka {

MockCluster::MockCluster(int brokers) {
  std::array<char, 256> error{};
  handle_ = rd_kafka_new(RD_KAFKA_PRODUCER, rd_kafka_conf_new(), error.data(), error.size());
  MUSTER_CHECK_MSG(handle_ != nullptr, error.data());
  cluster_ = rd_kafka_mock_cluster_new(handle_, brokers);
  MUSTER_CHECK(cluster_ != nullptr);
  bootstrap_ = rd_kafka_mock_cluster_bootstraps(cluster_);
}

MockCluster::~MockCluster() {
  producer_.reset();
  rd_kafka_mock_cluster_destroy(cluster_);
  rd_kafka_destroy(handle_);
}

void MockCluster::FailWrites(rd_kafka_resp_err_t error, size_t count) {
  constexpr int16_t kProduce = 0;
  const std::vector<rd_kafka_resp_err_t> errors(count, error);
  rd_kafka_mock_push_request_errors_array(cluster_, kProduce, count, errors.data());
}

void MockCluster::CreateTopic(const std::string& topic, int partitions) {
  MUSTER_CHECK(rd_kafka_mock_topic_create(cluster_, topic.c_str(), partitions, 1) ==
               RD_KAFKA_RESP_ERR_NO_ERROR);
}

void MockCluster::Produce(const std::string& topic, int32_t partition, uint64_t count,
                          uint64_t first, std::string_view prefix) {
  if (producer_ == nullptr) {
    auto producer = Producer::Open(config());
    MUSTER_CHECK_MSG(producer.ok(), producer.status().ToString());
    producer_ = *std::move(producer);
  }
  for (uint64_t i = first; i < first + count; ++i) {
    const std::string value = std::string(prefix) + std::to_string(i);
    const std::string key = "k" + std::to_string(i);
    const absl::Status sent = producer_->Send({.topic = topic,
                                               .value = value,
                                               .key = key,
                                               .headers = {{"n", std::to_string(i)}},
                                               .partition = partition});
    MUSTER_CHECK_MSG(sent.ok(), sent.ToString());
  }
  const absl::Status flushed = producer_->Flush(std::chrono::seconds(30));
  MUSTER_CHECK_MSG(flushed.ok(), flushed.ToString());
}

}  // namespace muster::kafka
