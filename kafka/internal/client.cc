#include "kafka/internal/client.h"

#include <fmt/ranges.h>

#include <array>
#include <chrono>
#include <future>
#include <string_view>
#include <thread>
#include <utility>

#include "base/log.h"
#include "base/status.h"
#include "base/text.h"

namespace muster::kafka::internal {
namespace {

constexpr size_t kErrorBytesMax = 400;
constexpr std::chrono::seconds kEndMax{2};

absl::StatusCode CodeOf(rd_kafka_resp_err_t error) {
  switch (error) {
    case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
    case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC:
    case RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION:
      return absl::StatusCode::kNotFound;
    case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
    case RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED:
    case RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED:
    case RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED:
    case RD_KAFKA_RESP_ERR__AUTHENTICATION:
      return absl::StatusCode::kPermissionDenied;
    case RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE:
    case RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET:
      return absl::StatusCode::kOutOfRange;
    case RD_KAFKA_RESP_ERR__BAD_MSG:
    case RD_KAFKA_RESP_ERR_INVALID_MSG:
      return absl::StatusCode::kDataLoss;
    case RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE:
      return absl::StatusCode::kResourceExhausted;
    default:
      return absl::StatusCode::kUnavailable;
  }
}

absl::Status Set(rd_kafka_conf_t* conf, const std::string& name, const std::string& value,
                 bool secret) {
  std::array<char, 512> text{};
  const rd_kafka_conf_res_t result =
      rd_kafka_conf_set(conf, name.c_str(), value.c_str(), text.data(), text.size());
  if (result == RD_KAFKA_CONF_OK) return absl::OkStatus();
  // librdkafka's own text may repeat the value.
  const std::string why = result == RD_KAFKA_CONF_UNKNOWN ? "librdkafka has no such setting"
                          : secret                        ? "librdkafka refuses its value"
                                                          : Printable(text.data());
  return absl::InvalidArgumentError(fmt::format("the setting {}: {}", name, why));
}

}  // namespace

absl::Status ToStatus(rd_kafka_resp_err_t error, std::string_view what) {
  if (error == RD_KAFKA_RESP_ERR_NO_ERROR) return absl::OkStatus();
  return absl::Status(CodeOf(error), fmt::format("{}: {}", what, rd_kafka_err2str(error)));
}

absl::StatusOr<ConfRef> MakeConf(const ClientConfig& config, const Settings& defaults,
                                 const Settings& ours) {
  ConfRef conf(rd_kafka_conf_new());
  // With this, it reconnects soon after a broker is back, however long the broker was away.
  MUSTER_RETURN_IF_ERROR(Set(conf.get(), "reconnect.backoff.max.ms", "1000", false));
  for (const auto& [name, value] : defaults) {
    MUSTER_RETURN_IF_ERROR(Set(conf.get(), name, value, false));
  }
  for (const auto& [name, value] : config.properties) {
    MUSTER_RETURN_IF_ERROR(Set(conf.get(), name, value, false));
  }
  for (const auto& [name, place] : config.secrets) {
    absl::StatusOr<std::string> value = ReadSecret(place);
    MUSTER_RETURN_IF_ERROR_PREPEND(value.status(), fmt::format("the setting {}", name));
    MUSTER_RETURN_IF_ERROR(Set(conf.get(), name, *value, true));
  }
  for (const auto& [name, value] : ours) {
    MUSTER_RETURN_IF_ERROR(Set(conf.get(), name, value, false));
  }
  if (config.brokers.empty()) return conf;
  MUSTER_RETURN_IF_ERROR(Set(conf.get(), "bootstrap.servers",
                             fmt::format("{}", fmt::join(config.brokers, ",")), false));
  return conf;
}

absl::StatusOr<std::unique_ptr<Client>> Client::Open(rd_kafka_type_t type,
                                                     const ClientConfig& config,
                                                     const Settings& defaults,
                                                     const Settings& ours) {
  MUSTER_ASSIGN_OR_RETURN(ConfRef conf, MakeConf(config, defaults, ours));
  std::unique_ptr<Client> client(new Client());
  rd_kafka_conf_set_opaque(conf.get(), client->reports_.get());
  rd_kafka_conf_set_error_cb(conf.get(), &Client::OnError);
  rd_kafka_conf_set_log_cb(conf.get(), &Client::OnLog);
  if (type == RD_KAFKA_PRODUCER) rd_kafka_conf_set_dr_msg_cb(conf.get(), &Client::OnDelivery);
  std::array<char, 512> text{};
  client->handle_ = rd_kafka_new(type, conf.get(), text.data(), text.size());
  if (client->handle_ == nullptr) {
    return absl::InvalidArgumentError(
        fmt::format("librdkafka refuses its settings: {}", Printable(text.data())));
  }
  conf.release();  // the handle owns it now
  // Errors of connections arrive in the same queue as records.
  if (type == RD_KAFKA_CONSUMER) rd_kafka_poll_set_consumer(client->handle_);
  return client;
}

Client::~Client() {
  if (handle_ == nullptr) return;
  auto ended = std::make_shared<std::promise<void>>();
  const std::future<void> end = ended->get_future();
  std::thread([handle = handle_, reports = reports_, ended = std::move(ended)] {
    // Without this flag, a consumer waits at its end for a group that it has never joined.
    rd_kafka_destroy_flags(handle, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
    ended->set_value();
  }).detach();
  if (end.wait_for(kEndMax) == std::future_status::ready) return;
  Log(LogLevel::kWarning, "a Kafka client does not end within 2 s, and is left behind");
}

std::string Client::last_error() const {
  MutexLock lock(&reports_->mutex);
  return reports_->last_error;
}

void Client::OnError(rd_kafka_t*, int error, const char* reason, void* reports) {
  // The earlier message about a single broker is more useful than "all brokers are down".
  if (error == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN) return;
  auto* mine = static_cast<Reports*>(reports);
  MutexLock lock(&mine->mutex);
  // If librdkafka does not understand a setting's value, its messages repeat the value.
  const bool may_tell = std::string_view(reason).find("oauthbearer.config") == std::string::npos;
  mine->last_error = may_tell ? Excerpt(reason, kErrorBytesMax)
                              : "librdkafka does not understand sasl.oauthbearer.config";
}

void Client::OnDelivery(rd_kafka_t*, const rd_kafka_message_t* message, void* reports) {
  if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR) return;
  auto* mine = static_cast<Reports*>(reports);
  MutexLock lock(&mine->mutex);
  if (!mine->delivery_failure.ok()) return;
  mine->delivery_failure =
      ToStatus(message->err, fmt::format("topic '{}'", rd_kafka_topic_name(message->rkt)));
}

absl::Status Client::TakeDeliveryFailure() {
  MutexLock lock(&reports_->mutex);
  return std::exchange(reports_->delivery_failure, absl::OkStatus());
}

void Client::OnLog(const rd_kafka_t*, int, const char* facility, const char* text) {
  // This is only for debugging, because the waiting caller reports a lost connection, once.
  Log(LogLevel::kDebug, "librdkafka {}: {}", facility, Excerpt(text, kErrorBytesMax));
}

}  // namespace muster::kafka::internal
