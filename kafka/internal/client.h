#pragma once

#include <librdkafka/rdkafka.h>

#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "kafka/client_config.h"

/// librdkafka's C API with owners and statuses. Only the sources of kafka/ use it.
namespace muster::kafka::internal {

template <auto Destroy>
struct Destroyer {
  template <typename T>
  void operator()(T* object) const {
    Destroy(object);
  }
};
using ConfRef = std::unique_ptr<rd_kafka_conf_t, Destroyer<rd_kafka_conf_destroy>>;
using TopicRef = std::unique_ptr<rd_kafka_topic_t, Destroyer<rd_kafka_topic_destroy>>;
using ListRef = std::unique_ptr<rd_kafka_topic_partition_list_t,
                                Destroyer<rd_kafka_topic_partition_list_destroy>>;
using QueueRef = std::unique_ptr<rd_kafka_queue_t, Destroyer<rd_kafka_queue_destroy>>;
using MessageRef = std::unique_ptr<rd_kafka_message_t, Destroyer<rd_kafka_message_destroy>>;
using ErrorRef = std::unique_ptr<rd_kafka_error_t, Destroyer<rd_kafka_error_destroy>>;
using EventRef = std::unique_ptr<rd_kafka_event_t, Destroyer<rd_kafka_event_destroy>>;

/// The status for an error: kNotFound (no such topic or partition), kPermissionDenied, kOutOfRange
/// (the offset is gone), kResourceExhausted (the record is too large), kDataLoss (the record is
/// damaged). All others are kUnavailable, which may be temporary. The message is librdkafka's.
absl::Status ToStatus(rd_kafka_resp_err_t error, std::string_view what);

using Settings = std::map<std::string, std::string>;
/// Combines the settings. Those of `config` override `defaults` and the settings that all our
/// clients have. `ours` override those of `config`.
absl::StatusOr<ConfRef> MakeConf(const ClientConfig& config, const Settings& defaults,
                                 const Settings& ours);

/// A client of a cluster. It is as thread-safe as librdkafka.
class Client {
 public:
  /// Connects in the background. Errors are those of CheckConfig.
  static absl::StatusOr<std::unique_ptr<Client>> Open(rd_kafka_type_t type,
                                                      const ClientConfig& config,
                                                      const Settings& defaults,
                                                      const Settings& ours);
  /// Waits for librdkafka for at most 2 s. If its topic was deleted, a consumer of version 2.0 may
  /// never end. Then it is left behind, and the log says so.
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  rd_kafka_t* get() const { return handle_; }
  /// The last connection error, for messages. Empty if there was none.
  std::string last_error() const;
  /// The error of the first record that the brokers have refused since the last call.
  absl::Status TakeDeliveryFailure();

 private:
  /// The threads of librdkafka write these reports. They may live longer than the client.
  struct Reports {
    mutable Mutex mutex;
    std::string last_error MUSTER_GUARDED_BY(mutex);
    absl::Status delivery_failure MUSTER_GUARDED_BY(mutex);
  };

  Client() = default;
  static void OnError(rd_kafka_t* handle, int error, const char* reason, void* reports);
  static void OnDelivery(rd_kafka_t* handle, const rd_kafka_message_t* message, void* reports);
  static void OnLog(const rd_kafka_t* handle, int level, const char* facility, const char* text);

  rd_kafka_t* handle_ = nullptr;
  const std::shared_ptr<Reports> reports_ = std::make_shared<Reports>();
};

}  // namespace muster::kafka::internal
