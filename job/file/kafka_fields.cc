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
                         "`host:port` of some brokers; Muster finds the others. They must be of "
                         "the cluster on which the job began."));
  fields->push_back(Default(Make(in + "topic", Form::kTopic, {}, kFixed, Kafka(&TopicSpec::topic),
                                 "The topic to read, instead of `files`."),
                            "none"));
  fields->push_back(
      Make(in + "start", Form::kStreamStart, {}, kFixed, Kafka(&TopicSpec::start),
           "Where reading begins. If the topic gets a partition later, that partition "
           "is read from its oldest record."));
  fields->push_back(
      Make(in + "end", Form::kStreamEnd, {}, kFixed, Kafka(&TopicSpec::end),
           "Where reading ends. `now` means the end of the topic when the job begins. "
           "Offsets must name every partition, also one that is added later."));
  fields->push_back(Make(in + "maxDelay", Form::kDuration, {10 * kMs, kHour}, kAny,
                         Kafka(&TopicSpec::max_delay),
                         "How long a record waits at most until other records fill its shard."));
  fields->push_back(Make(in + "openRangesMax", Form::kWhole, {1, 1'000'000}, kAny,
                         Kafka(&TopicSpec::open_ranges_max),
                         "Most shards that may be open (cut but not done)."));
  fields->push_back(
      Default(Make(in + "recordBytesMax", Form::kMemory, {1024, 512 * kMi}, kAny,
                   Kafka(&TopicSpec::record_bytes_max),
                   "Size of the largest record. If a record is larger, its shard fails."),
              "16Mi"));
  fields->push_back(Default(
      Make(in + "deadLetterTopic", Form::kTopic, {}, kAny, Kafka(&TopicSpec::dead_letter_topic),
           "Topic to which rejected records are also written."),
      "none"));
  fields->push_back(Make(in + "properties", Form::kProperties, {0, 200}, kAny,
                         Kafka(&TopicSpec::properties),
                         "Settings of librdkafka, for example `security.protocol`. Muster itself "
                         "sets those that decide which records are read."));
  fields->push_back(Make(in + "secrets", Form::kSecrets, {0, 20}, kAny, Kafka(&TopicSpec::secrets),
                         "More settings, whose values are shown nowhere. `env:NAME` or `file:PATH` "
                         "says where the value is."));
}

}  // namespace muster::job_file
