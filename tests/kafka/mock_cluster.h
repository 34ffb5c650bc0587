#pragma once

#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "kafka/client_config.h"
#include "kafka/producer.h"

namespace muster::kafka {

/// A KeepWaiting that never ends the wait.
inline bool Always(std::string_view) {
  return true;
}

/// Brokers inside the test, of librdkafka's. They know nothing of transactions, keep what fits into
/// 5 MiB per partition, and listen on loopback.
class MockCluster {
 public:
  explicit MockCluster(int brokers = 1);
  ~MockCluster();

  ClientConfig config() const { return {{bootstrap_}, {}, {}}; }
  rd_kafka_mock_cluster_t* get() const { return cluster_; }
  void CreateTopic(const std::string& topic, int partitions);
  /// Writes `count` records "<prefix><number>" to a partition, numbered from `first` on.
  void Produce(const std::string& topic, int32_t partition, uint64_t count, uint64_t first = 0,
               std::string_view prefix = "r");
  /// The next `count` writes are answered with an error.
  void FailWrites(rd_kafka_resp_err_t error, size_t count);

 private:
  rd_kafka_t* handle_ = nullptr;
  rd_kafka_mock_cluster_t* cluster_ = nullptr;
  std::string bootstrap_;
  std::unique_ptr<Producer> producer_;
};

}  // namespace muster::kafka
