#include "kafka/topic.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "base/status.h"
#include "kafka/internal/client.h"

namespace muster::kafka {
namespace {

using internal::Client;
using internal::EventRef;
using internal::ListRef;
using internal::QueueRef;
using internal::ToStatus;

constexpr std::string_view kDeletes = "delete";           // a word of cleanup.policy
constexpr char kCreates[] = "auto.create.topics.enable";  // a broker setting
/// Some users set the largest possible number, and mean "forever".
constexpr std::chrono::milliseconds kRetentionMax = std::chrono::years(100);

struct FreeString {
  rd_kafka_t* handle;
  void operator()(char* text) const { rd_kafka_mem_free(handle, text); }
};

class TopicImpl final : public Topic {
 public:
  TopicImpl(std::unique_ptr<Client> client, std::unique_ptr<Client> uncommitted, Options options)
      : client_(std::move(client)),
        uncommitted_(std::move(uncommitted)),
        options_(std::move(options)),
        name_(fmt::format("topic '{}'", options_.topic)) {}

  absl::StatusOr<std::string> Cluster() override {
    const internal::MessageRef none(rd_kafka_consumer_poll(client_->get(), 0));  // runs callbacks
    const std::unique_ptr<char, FreeString> id(rd_kafka_clusterid(client_->get(), Timeout()),
                                               FreeString{client_->get()});
    if (id == nullptr) return Explain(absl::UnavailableError(name_ + ": no broker answers"));
    return std::string(id.get());
  }

  absl::StatusOr<uint32_t> Partitions() override { return PartitionsOf(*client_, options_.topic); }

  absl::Status CheckOther(const std::string& topic) override {
    const absl::Status status = PartitionsOf(*client_, topic).status();
    if (!absl::IsNotFound(status)) return status;
    const int32_t broker = rd_kafka_controllerid(client_->get(), Timeout());
    if (broker < 0) return status;
    const auto settings = Describe(RD_KAFKA_RESOURCE_BROKER, fmt::format("{}", broker));
    // If the user may not read the brokers' settings, the error is that the topic does not exist,
    // which is true.
    if (!settings.ok()) return status;
    const auto creates = settings->find(kCreates);
    return creates != settings->end() && creates->second == "true" ? absl::OkStatus() : status;
  }

  absl::StatusOr<std::vector<Log>> Logs(uint32_t partitions) override {
    MUSTER_ASSIGN_OR_RETURN(const ListRef begins,
                            Ask(*client_, partitions, RD_KAFKA_OFFSET_BEGINNING));
    MUSTER_ASSIGN_OR_RETURN(const ListRef stable_ends,
                            Ask(*client_, partitions, RD_KAFKA_OFFSET_END));
    // Each client finds out by itself where leaders are, and that there are new partitions.
    MUSTER_RETURN_IF_ERROR(PartitionsOf(*uncommitted_, options_.topic).status());
    MUSTER_ASSIGN_OR_RETURN(const ListRef ends,
                            Ask(*uncommitted_, partitions, RD_KAFKA_OFFSET_END));
    std::vector<Log> logs;
    for (uint32_t p = 0; p < partitions; ++p) {
      const int64_t begin = begins->elems[p].offset, end = ends->elems[p].offset;
      const int64_t stable_end = std::max(begin, stable_ends->elems[p].offset);
      if (begin < 0 || end < 0 || stable_ends->elems[p].offset < 0) {
        return absl::UnavailableError(
            fmt::format("{}, partition {}: the brokers did not answer where it ends", name_, p));
      }
      logs.push_back({static_cast<uint64_t>(begin), static_cast<uint64_t>(stable_end),
                      static_cast<uint64_t>(std::max(stable_end, end))});
    }
    return logs;
  }

  absl::StatusOr<std::vector<std::optional<uint64_t>>> OffsetsAt(
      uint32_t partitions, std::chrono::milliseconds time) override {
    MUSTER_ASSIGN_OR_RETURN(const ListRef list, Ask(*client_, partitions, time.count()));
    std::vector<std::optional<uint64_t>> offsets;
    for (uint32_t p = 0; p < partitions; ++p) {
      const int64_t offset = list->elems[p].offset;
      // If no answer came in time, some versions of librdkafka leave the requested time in place of
      // the offset.
      if (offset == time.count()) {
        return absl::UnavailableError(fmt::format(
            "{}, partition {}: the brokers did not answer which offset that time has", name_, p));
      }
      offsets.push_back(offset < 0 ? std::nullopt
                                   : std::optional<uint64_t>(static_cast<uint64_t>(offset)));
    }
    return offsets;
  }

  absl::StatusOr<std::optional<std::chrono::milliseconds>> Retention() override {
    MUSTER_ASSIGN_OR_RETURN(const Settings settings,
                            Describe(RD_KAFKA_RESOURCE_TOPIC, options_.topic));
    const auto value = [&](const char* name, std::string_view otherwise) {
      const auto found = settings.find(name);
      return found == settings.end() ? otherwise : std::string_view(found->second);
    };
    return RetentionOf(value("retention.ms", ""), value("cleanup.policy", kDeletes));
  }

  absl::Status Commit(const std::map<uint32_t, uint64_t>& offsets) override {
    if (offsets.empty()) return absl::OkStatus();
    const ListRef list(rd_kafka_topic_partition_list_new(static_cast<int>(offsets.size())));
    for (const auto& [partition, offset] : offsets) {
      rd_kafka_topic_partition_list_add(list.get(), options_.topic.c_str(),
                                        static_cast<int32_t>(partition))
          ->offset = static_cast<int64_t>(offset);
    }
    // The call that waits by itself has no timeout, so this polls.
    const std::string what = fmt::format("{}: group '{}'", name_, options_.group);
    const QueueRef queue(rd_kafka_queue_new(client_->get()));
    MUSTER_RETURN_IF_ERROR(ToStatus(
        rd_kafka_commit_queue(client_->get(), list.get(), queue.get(), nullptr, nullptr), what));
    const EventRef event(rd_kafka_queue_poll(queue.get(), Timeout()));
    if (event == nullptr) {
      return Explain(absl::UnavailableError(what + ": its coordinator does not answer"));
    }
    return ToStatus(rd_kafka_event_error(event.get()), what);
  }

 private:
  int Timeout() const { return static_cast<int>(options_.timeout.count()); }

  absl::Status Explain(absl::Status status) const { return Explain(*client_, std::move(status)); }
  /// Adds the last connection error if that may be the cause.
  static absl::Status Explain(const Client& client, absl::Status status) {
    const internal::MessageRef none(rd_kafka_consumer_poll(client.get(), 0));  // runs callbacks
    const std::string error = client.last_error();
    if (error.empty() || !absl::IsUnavailable(status)) return status;
    return absl::UnavailableError(fmt::format("{} ({})", Message(status), error));
  }

  absl::StatusOr<uint32_t> PartitionsOf(const Client& client, const std::string& name) {
    const std::string what = fmt::format("topic '{}'", name);
    const internal::TopicRef topic(rd_kafka_topic_new(client.get(), name.c_str(), nullptr));
    const rd_kafka_metadata_t* metadata = nullptr;
    const rd_kafka_resp_err_t error =
        rd_kafka_metadata(client.get(), 0, topic.get(), &metadata, Timeout());
    if (error != RD_KAFKA_RESP_ERR_NO_ERROR) return Explain(client, ToStatus(error, what));
    const std::unique_ptr<const rd_kafka_metadata_t, internal::Destroyer<rd_kafka_metadata_destroy>>
        owner(metadata);
    if (metadata->topic_cnt != 1)
      return absl::UnavailableError(what + ": the brokers sent an empty answer");
    if (metadata->topics[0].err != RD_KAFKA_RESP_ERR_NO_ERROR) {
      return ToStatus(metadata->topics[0].err, what);
    }
    return static_cast<uint32_t>(metadata->topics[0].partition_cnt);
  }

  /// Calls ListOffsets for every partition. `time` may be one of librdkafka's constants for begin
  /// and end.
  absl::StatusOr<ListRef> Ask(const Client& client, uint32_t partitions, int64_t time) {
    ListRef list(rd_kafka_topic_partition_list_new(static_cast<int>(partitions)));
    for (uint32_t p = 0; p < partitions; ++p) {
      rd_kafka_topic_partition_list_add(list.get(), options_.topic.c_str(), static_cast<int32_t>(p))
          ->offset = time;
    }
    MUSTER_RETURN_IF_ERROR(Explain(
        client, Untold(rd_kafka_offsets_for_times(client.get(), list.get(), Timeout()), name_)));
    rd_kafka_topic_partition_list_sort(list.get(), nullptr, nullptr);
    for (int p = 0; p < list->cnt; ++p) {
      MUSTER_RETURN_IF_ERROR(Untold(list->elems[p].err, fmt::format("{}, partition {}", name_, p)));
    }
    return list;
  }
  /// A broker without this partition (yet, or any more) cannot say whether the topic exists.
  /// Partitions() can.
  static absl::Status Untold(rd_kafka_resp_err_t error, std::string_view what) {
    const absl::Status status = ToStatus(error, what);
    return absl::IsNotFound(status) ? absl::UnavailableError(status.message()) : status;
  }

  using Settings = std::map<std::string, std::string>;
  /// The settings of a topic or a broker, as the brokers report them. Empty if they report none.
  absl::StatusOr<Settings> Describe(rd_kafka_ResourceType_t type, const std::string& name) {
    const QueueRef queue(rd_kafka_queue_new(client_->get()));
    rd_kafka_ConfigResource_t* resource = rd_kafka_ConfigResource_new(type, name.c_str());
    const std::unique_ptr<rd_kafka_ConfigResource_t,
                          internal::Destroyer<rd_kafka_ConfigResource_destroy>>
        owner(resource);
    rd_kafka_DescribeConfigs(client_->get(), &resource, 1, nullptr, queue.get());
    const EventRef event(rd_kafka_queue_poll(queue.get(), Timeout()));
    if (event == nullptr) return Explain(absl::UnavailableError(name_ + ": no broker answers"));
    const rd_kafka_DescribeConfigs_result_t* result =
        rd_kafka_event_DescribeConfigs_result(event.get());
    if (result == nullptr || rd_kafka_event_error(event.get()) != RD_KAFKA_RESP_ERR_NO_ERROR) {
      return ToStatus(rd_kafka_event_error(event.get()), name_);
    }
    Settings settings;
    size_t count = 0;
    const rd_kafka_ConfigResource_t** resources =
        rd_kafka_DescribeConfigs_result_resources(result, &count);
    if (count != 1) return settings;
    const rd_kafka_ConfigEntry_t** entries = rd_kafka_ConfigResource_configs(resources[0], &count);
    for (size_t i = 0; i < count; ++i) {
      const char* text = rd_kafka_ConfigEntry_value(entries[i]);
      if (text != nullptr) settings[rd_kafka_ConfigEntry_name(entries[i])] = text;
    }
    return settings;
  }

  const std::unique_ptr<Client> client_;
  /// Each client has one isolation level. This one also reads open transactions.
  const std::unique_ptr<Client> uncommitted_;
  const Options options_;
  const std::string name_;
};

}  // namespace

std::optional<std::chrono::milliseconds> RetentionOf(std::string_view retention_ms,
                                                     std::string_view cleanup_policy) {
  int64_t kept_ms = -1;
  std::from_chars(retention_ms.data(), retention_ms.data() + retention_ms.size(), kept_ms);
  const bool deletes = cleanup_policy.find(kDeletes) != std::string_view::npos;
  const std::chrono::milliseconds kept(kept_ms);
  if (!deletes || kept.count() < 0 || kept > kRetentionMax) return std::nullopt;
  return kept;
}

absl::StatusOr<std::unique_ptr<Topic>> Topic::Open(const ClientConfig& config, Options options) {
  internal::Settings settings = {{"group.id", options.group},
                                 {"enable.auto.commit", "false"},
                                 {"enable.auto.offset.store", "false"},
                                 {"session.timeout.ms", "6000"},  // waits for coordinators
                                 {"allow.auto.create.topics", "false"},
                                 {"isolation.level", "read_committed"}};
  MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<Client> client,
                          Client::Open(RD_KAFKA_CONSUMER, config, {}, settings));
  settings["isolation.level"] = "read_uncommitted";
  MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<Client> uncommitted,
                          Client::Open(RD_KAFKA_CONSUMER, config, {}, settings));
  return std::make_unique<TopicImpl>(std::move(client), std::move(uncommitted), std::move(options));
}

}  // namespace muster::kafka
