// spec.datasets[].kafka of the table of fields.
#include "job/file/field_builder.h"

namespace muster::job_file {
namespace {

template <typename T>
Find Kafka(T TopicSpec::* member) {
  return [member](const FieldScope& scope) -> Target { return &(scope.dataset->topic.*member); };
}

}  // namespace

void AddKafkaFields(std::vector<Field>* fields) {
  const std::string in = "spec.datasets[].kafka.";
  constexpr OnResume kFixed = OnResume::kFixed;
  constexpr OnResume kAny = OnResume::kMayChange;
  fields->push_back(Make(in + "brokers", Form::kCommand, {1, 100}, kAny, Kafka(&TopicSpec::brokers),
                         "`host:port` of some brokers; the others are found. Those of the cluster "
                         "that the job began on."));
  fields->push_back(Default(Make(in + "topic", Form::kTopic, {}, kFixed, Kafka(&TopicSpec::topic),
                                 "Makes the dataset a topic, in place of `files`."),
                            "none"));
  fields->push_back(Make(in + "start", Form::kStreamStart, {}, kFixed, Kafka(&TopicSpec::start),
                         "Where reading begins. A partition that the topic gets later is read from "
                         "its oldest record."));
  fields->push_back(Make(in + "end", Form::kStreamEnd, {}, kFixed, Kafka(&TopicSpec::end),
                         "Where it ends; `now`: with what is there when the job begins. Offsets "
                         "must name every partition, also one that is added later."));
  fields->push_back(Make(in + "maxDelay", Form::kDuration, {10 * kMs, kHour}, kAny,
                         Kafka(&TopicSpec::max_delay),
                         "How long a record waits for others to fill its shard."));
  fields->push_back(Make(in + "openRangesMax", Form::kWhole, {1, 1'000'000}, kAny,
                         Kafka(&TopicSpec::open_ranges_max),
                         "Shards cut and not done; no more are cut beyond."));
  fields->push_back(Default(
      Make(in + "recordBytesMax", Form::kMemory, {1024, 512 * kMi}, kAny,
           Kafka(&TopicSpec::record_bytes_max), "Largest record; the shard of a larger one fails."),
      "16Mi"));
  fields->push_back(Default(
      Make(in + "deadLetterTopic", Form::kTopic, {}, kAny, Kafka(&TopicSpec::dead_letter_topic),
           "Rejected records are written there, too."),
      "none"));
  fields->push_back(Make(in + "properties", Form::kProperties, {0, 200}, kAny,
                         Kafka(&TopicSpec::properties),
                         "Settings of librdkafka, such as `security.protocol`; those that decide "
                         "what is read are Muster's own."));
  fields->push_back(Make(in + "secrets", Form::kSecrets, {0, 20}, kAny, Kafka(&TopicSpec::secrets),
                         "Further settings whose values are not shown anywhere: `env:NAME` or "
                         "`file:PATH` says where each is."));
}

}  // namespace muster::job_file
