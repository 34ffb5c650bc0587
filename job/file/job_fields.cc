#include "job/file/job_fields.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <limits>
#include <utility>

#include "base/words/dataset_modes.h"
#include "base/words/limits.h"
#include "job/file/field_builder.h"
#include "job/file/scalars.h"

namespace muster::job_file {
namespace {

using std::chrono::milliseconds;

void AddHead(std::vector<Field>* fields) {
  fields->push_back(Required(Choice(Make("apiVersion", Form::kChoice, {}, OnResume::kMayChange,
                                         Unused, "Version of this format."),
                                    {"muster/v1"})));
  fields->push_back(Required(Choice(
      Make("kind", Form::kChoice, {}, OnResume::kMayChange, Unused, "What the file describes."),
      {"TrainingJob"})));
  fields->push_back(Required(Make("metadata.name", Form::kName, {}, OnResume::kFixed,
                                  Job(&JobSpec::name), "The job's name.")));
  fields->push_back(Make("spec.seed", Form::kWhole, {0, std::numeric_limits<uint64_t>::max()},
                         OnResume::kFixed, Job(&JobSpec::seed),
                         "All shuffles and initial values depend on it."));
  fields->push_back(Make("spec.partitions", Form::kWhole, {1, 65'536}, OnResume::kFixed,
                         Job(&JobSpec::partitions),
                         "Number of parts of the weights; each part belongs to one server. At "
                         "least one per server; eight or more share the load evenly. Each "
                         "table costs a little for each part."));
  fields->push_back(Default(
      Make("spec.stateDirectory", Form::kPath, {}, OnResume::kMayChange,
           Job(&JobSpec::state_directory),
           "Directory for the journal, index, logs and summary. If you name another directory, the "
           "job begins again there. To move it, also move its contents."),
      "state"));
  fields->push_back(Default(Make("spec.snapshots.directory", Form::kPath, {}, OnResume::kMayChange,
                                 Job(&JobSpec::snapshot_directory),
                                 "Directory for snapshots of the weights, or `s3://bucket/prefix` "
                                 "([S3](storage.md)). Every server must be able to read it. It "
                                 "belongs to one job. To move it, also move its contents."),
                            "`snapshots` in the state directory"));
  fields->push_back(Make("spec.snapshots.interval", Form::kDuration, {100 * kMs, 24 * kHour},
                         OnResume::kMayChange, Job(&JobSpec::snapshot_interval),
                         "Time between two snapshots of a partition; partitions take turns. If a "
                         "server dies, about this much work runs again. Until the first commit, "
                         "snapshots come ten times as often, but not more often than every 2 s."));
  fields->push_back(
      Make("spec.snapshots.restoreTimeout", Form::kDuration, {1 * kSecond, 24 * kHour},
           OnResume::kMayChange, Job(&JobSpec::restore_timeout),
           "How long a server, or a whole group, may fail to read snapshots (a file "
           "is missing or damaged, a disk is away) before the run ends with exit code "
           "7."));
}

void AddDatasets(std::vector<Field>* fields) {
  const std::string in = "spec.datasets[].";
  fields->push_back(Required(Make(in + "name", Form::kName, {}, OnResume::kFixed,
                                  Dataset(&DatasetSpec::name), "Unique in the job.")));
  fields->push_back(
      Choice(Make(in + "mode", Form::kChoice, {}, OnResume::kFixed, Dataset(&DatasetSpec::mode),
                  "`evaluate`: it is read after every training epoch and changes no weights. "
                  "`predict`: it is read once, after all training, and the trainer's outputs go "
                  "to `output`."),
             {kDatasetModes.begin(), kDatasetModes.end()}));
  fields->push_back(Default(
      Make(in + "output", Form::kPath, {}, OnResume::kMayChange, Dataset(&DatasetSpec::output),
           "For mode `predict`: the directory, or `s3://bucket/prefix`, where each shard's "
           "outputs become one file as soon as the shard is done. Every worker must be "
           "able to write there. It belongs to one job. If you change it, what is there stays "
           "there."),
      "required with mode `predict`"));
  fields->push_back(Default(
      Make(in + "files", Form::kGlobs, {1, 10'000}, OnResume::kFixed, Lines(&LinesSpec::files),
           "Glob patterns of files of plain text whose lines have at most 16 MiB. A UTF-8 "
           "byte-order "
           "mark at a file's beginning is dropped. Their content may not "
           "change. You may move the files if their order stays the same."),
      "required without `kafka` or `records`"));
  fields->push_back(Make(in + "header", Form::kBool, {}, OnResume::kFixed,
                         Lines(&LinesSpec::header),
                         "True if the first line of each file is a header, not a record."));
  fields->push_back(Make(in + "epochs", Form::kWhole, {1, 1'000'000}, OnResume::kMayGrow,
                         Dataset(&DatasetSpec::epochs),
                         "How often the dataset is read; for mode `train` only."));
  fields->push_back(Make(in + "minibatchSize", Form::kWhole, {1, 1'048'576}, OnResume::kFixed,
                         Dataset(&DatasetSpec::minibatch_size), "Records per minibatch."));
  fields->push_back(Make(in + "minibatchesPerShard", Form::kWhole, {1, kMinibatchesPerShardMax},
                         OnResume::kFixed, Dataset(&DatasetSpec::minibatches_per_shard),
                         "Minibatches per shard, the unit of leasing and of retrying. Several "
                         "train datasets of files have fewer unless it is set, so that they are "
                         "mixed better: 1,024 / `minibatchSize`, but at least 4. With "
                         "`spec.group`, a train dataset has `globalBatch` / `minibatchSize`."));
  fields->push_back(Choice(
      Make(
          in + "shuffle", Form::kChoice, {}, OnResume::kFixed, Dataset(&DatasetSpec::shuffle),
          "`true`: in every epoch, each shard is another random sample of the whole dataset. It is "
          "read in pieces of a 256th of a shard, or of 16 records if that is more. `shards`: "
          "shards of neighbouring records run in a "
          "random order, and are shuffled inside, for disks that are slow to seek; the model may "
          "come out worse if the data is sorted."),
      {"false", "true", "shards"}));
  fields->push_back(Default(
      Make(in + "weight", Form::kNumber, {1, 1'000'000'000}, OnResume::kFixed,
           Dataset(&DatasetSpec::weight),
           "Train datasets are mixed evenly, in proportion to their records. With weights, each "
           "gets "
           "that share of the minibatches until it is used up; then all train datasets need one."),
      "none"));
  fields->push_back(
      Default(Make(
                  in + "records", Form::kWhole, {1, RangeSpec::kRecordsMax}, OnResume::kFixed,
                  [](const FieldScope& scope) -> Target { return &scope.dataset->range.records; },
                  "A dataset without files: its records are the numbers from 0 to one less than "
                  "this. The trainer reads what they stand for."),
              "none"));
  AddKafkaFields(fields);
}

Field LimitOfMemory(Field field) {
  field.min = 16 * kMi;
  field.min_reason = "a job's process cannot start with less";
  return field;
}

void AddResources(const std::string& in, ReplicaSpec JobSpec::* role, std::vector<Field>* fields) {
  constexpr OnResume kAny = OnResume::kMayChange;
  const auto add_cpu = [&](const std::string& kind, ResourceSpec ReplicaSpec::* which, uint64_t min,
                           std::string text) {
    fields->push_back(Make(in + kind + ".cpu", Form::kCores, {min, 4'096'000}, kAny,
                           Resource(role, which, &ResourceSpec::cpu), std::move(text)));
  };
  const auto memory = [&](const std::string& kind, ResourceSpec ReplicaSpec::* which,
                          std::string text) {
    return Make(in + kind + ".memory", Form::kMemory, {kMi, 64 * kTi}, kAny,
                Resource(role, which, &ResourceSpec::memory_bytes), std::move(text));
  };
  add_cpu("requests", &ReplicaSpec::requests, 1,
          "Cores that a process needs. No policy gives it less. On one machine, nothing is "
          "reserved.");
  fields->push_back(memory("requests", &ReplicaSpec::requests,
                           "Memory that a process needs. No policy gives it less. On one machine, "
                           "nothing is reserved. If no limit is given, the limit is this value "
                           "times `spec.scaler.initialResources.margin`."));
  add_cpu("limits", &ReplicaSpec::limits, 10, "Cores that a process may use at first.");
  fields->push_back(LimitOfMemory(
      memory("limits", &ReplicaSpec::limits,
             "Memory that a process may use at first. A process above its limit is killed.")));
  add_cpu("max", &ReplicaSpec::max, 10,
          "Most cores that policies may give a process. Without it, the budget and the machine set "
          "the bound.");
  fields->push_back(LimitOfMemory(memory(
      "max", &ReplicaSpec::max,
      "Most memory that policies may give a process. Without it, the budget and the machine set "
      "the bound.")));
}

void AddBudget(std::vector<Field>* fields) {
  fields->push_back(
      Make("spec.budget.cpu", Form::kCores, {10, 65'536'000}, OnResume::kMayChange,
           Job(&JobSpec::budget, &ResourceSpec::cpu),
           "Cores that the limits of all workers and servers may have together. Without it, each "
           "may have all cores of the machine."));
  fields->push_back(
      LimitOfMemory(Make("spec.budget.memory", Form::kMemory, {kMi, 1024 * kTi},
                         OnResume::kMayChange, Job(&JobSpec::budget, &ResourceSpec::memory_bytes),
                         "Memory that the limits of all workers and servers may have together. "
                         "Without it, the memory of the machine.")));
}

void AddReplicas(const std::string& role_name, ReplicaSpec JobSpec::* role, uint64_t replicas_max,
                 std::vector<Field>* fields) {
  const std::string in = "spec.replicaSpecs." + role_name + ".";
  const bool worker = role_name == "worker";
  fields->push_back(Make(in + "replicas", Form::kWhole, {0, replicas_max}, OnResume::kMayChange,
                         Job(role, &ReplicaSpec::replicas),
                         worker ? "Trainer processes at first. 0: all of them join."
                                : "Parameter servers. 0 in a job with `spec.group` only."));
  if (!worker) fields->back().default_text = "1; with `spec.group`: 0";
  if (worker) {
    fields->push_back(Default(
        Make(in + "minReplicas", Form::kWhole, {1, replicas_max}, OnResume::kMayChange,
             Job(role, &ReplicaSpec::replicas_min), "Fewest workers that policies may leave."),
        "`replicas`"));
    fields->push_back(Default(
        Make(in + "maxReplicas", Form::kWhole, {1, replicas_max}, OnResume::kMayChange,
             Job(role, &ReplicaSpec::replicas_max), "Most workers that policies may start."),
        "`replicas`"));
    fields->push_back(Required(Make(in + "command", Form::kCommand, {1, 1000}, OnResume::kMayChange,
                                    Job(role, &ReplicaSpec::command),
                                    "The trainer and its arguments. A program with a slash is "
                                    "relative to the job file's folder. A program without a slash "
                                    "is looked up in PATH.")));
  }
  fields->push_back(Default(Make(in + "env", Form::kEnvironment, {0, 1000}, OnResume::kMayChange,
                                 Job(role, &ReplicaSpec::env),
                                 "Environment variables in addition to the inherited ones."),
                            "none"));
  AddResources(in + "resources.", role, fields);
}

void AddProtocol(std::vector<Field>* fields) {
  constexpr OnResume kAny = OnResume::kMayChange;
  using Leases = JobSpec::Leases;
  using Servers = JobSpec::Servers;
  fields->push_back(Make("spec.leases.duration", Form::kDuration, {100 * kMs, 24 * kHour}, kAny,
                         Job(&JobSpec::leases, &Leases::duration),
                         "A worker that is silent for this long loses its shards."));
  fields->push_back(Make("spec.leases.maxAge", Form::kDuration, {kSecond, 168 * kHour}, kAny,
                         Job(&JobSpec::leases, &Leases::max_age),
                         "If a worker sends heartbeats but makes no progress on a shard for this "
                         "long, another worker gets the shard."));
  fields->push_back(
      Make("spec.leases.gracePeriod", Form::kDuration, {0, kHour}, kAny,
           Job(&JobSpec::leases, &Leases::grace_period),
           "After a restart, the master waits this long for workers to report the shards that they "
           "hold."));
  fields->push_back(
      Make("spec.leases.heartbeatInterval", Form::kDuration, {10 * kMs, kHour}, kAny,
           Job(&JobSpec::leases, &Leases::heartbeat_interval),
           "Time between two heartbeats of a worker; at most a third of `duration`."));
  fields->push_back(Make("spec.leases.failuresMax", Form::kWhole, {1, 1000}, kAny,
                         Job(&JobSpec::leases, &Leases::failures_max),
                         "A shard becomes FAILED after this many failures of the trainer. If the "
                         "trainer leaves it early three times in a row and gets no further than "
                         "before, that counts as one failure. A shard that has failed runs again "
                         "after the others of its epoch."));
  fields->push_back(
      Make("spec.servers.timeout", Form::kDuration, {100 * kMs, 24 * kHour}, kAny,
           Job(&JobSpec::servers, &Servers::timeout),
           "A server that is silent for this long is lost: `muster run` kills it and starts "
           "another."));
  fields->push_back(Make("spec.servers.heartbeatInterval", Form::kDuration, {10 * kMs, kHour}, kAny,
                         Job(&JobSpec::servers, &Servers::heartbeat_interval),
                         "Time between two heartbeats of a server; at most a third of `timeout`."));
  fields->push_back(Make("spec.servers.threads", Form::kWhole, {1, 256}, kAny,
                         Job(&JobSpec::servers, &Servers::threads),
                         "Threads per server, each with its own partitions."));
}

void AddSecurity(std::vector<Field>* fields) {
  constexpr OnResume kAny = OnResume::kMayChange;
  fields->push_back(
      Choice(Make("spec.security.tls", Form::kChoice, {}, kAny,
                  Job(&JobSpec::security, &SecuritySpec::tls),
                  "`auto`: all connections over TCP are TLS 1.3 as soon as any address of the job "
                  "is not loopback. `always`: they are TLS on loopback, too."),
             {"auto", "always"}));
  fields->push_back(Make("spec.security.insecure", Form::kBool, {}, kAny,
                         Job(&JobSpec::security, &SecuritySpec::insecure),
                         "If true, connections are plain text even on addresses that are not "
                         "loopback. Everybody who reaches them can then read and change the job."));
  fields->push_back(
      Default(Make("spec.security.certificates", Form::kPath, {}, kAny,
                   Job(&JobSpec::security, &SecuritySpec::certificates),
                   "Directory with your own ca.crt, ROLE.crt and ROLE.key for master, ps, scaler, "
                   "worker and operator. Without it, `muster run` makes and renews them."),
              "`tls` in the state directory"));
}

std::vector<Field> MakeFields() {
  std::vector<Field> fields;
  AddHead(&fields);
  AddS3Fields(&fields);
  AddDatasets(&fields);
  AddReplicas("ps", &JobSpec::ps, kServerReplicasMax, &fields);
  AddReplicas("worker", &JobSpec::worker, kWorkersMax, &fields);
  AddGroupFields(&fields);
  AddBudget(&fields);
  AddAddressFields(&fields);
  AddProtocol(&fields);
  AddSecurity(&fields);
  AddTrainingFields(&fields);
  AddScalerFields(&fields);
  AddKubernetesFields(&fields);
  return fields;
}

std::string ValueText(const std::string& value) {
  return value;
}
std::string ValueText(bool value) {
  return value ? "true" : "false";
}
std::string ValueText(milliseconds value) {
  return FormatDuration(value);
}
std::string ValueText(DatasetMode value) {
  return ToString(value);
}
std::string ValueText(Evaluation value) {
  return value == Evaluation::kOverlapping ? "overlap" : "atEpochEnd";
}
std::string ValueText(Shuffle value) {
  return ToString(value);
}
std::string ValueText(TlsUse value) {
  return value == TlsUse::kAlways ? "always" : "auto";
}
std::string ValueText(uint32_t value) {
  return fmt::format("{}", value);
}
std::string ValueText(uint64_t value) {
  return fmt::format("{}", value);
}
std::string ValueText(double value) {
  return fmt::format("{:g}", value);
}
template <typename T>
std::string ValueText(const std::optional<T>&) {
  return "none";
}
std::string ValueText(const StreamBound& value) {
  return ToString(value);
}
std::string ValueText(const std::vector<std::string>&) {
  return "none";
}
std::string ValueText(const std::map<std::string, std::string>&) {
  return "none";
}

std::string CoresText(uint64_t thousandths) {
  if (thousandths % 1000 == 0) return fmt::format("{}", thousandths / 1000);
  return fmt::format("{}m", thousandths);
}

}  // namespace

const std::vector<Field>& JobFields() {
  static const std::vector<Field> fields = MakeFields();
  return fields;
}

std::string TypeText(const Field& field) {
  switch (field.form) {
    case Form::kText:
      return "text";
    case Form::kName:
      return "name";
    case Form::kChoice:
      return field.choices.size() == 1 ? "constant" : "choice";
    case Form::kPath:
      return "path";
    case Form::kAddress:
      return "host:port";
    case Form::kHost:
      return "host";
    case Form::kPorts:
      return "ports";
    case Form::kWhole:
      return "whole number";
    case Form::kNumber:
      return "number";
    case Form::kBool:
      return "true or false";
    case Form::kDuration:
      return "duration";
    case Form::kMemory:
      return "memory";
    case Form::kCores:
      return "cores";
    case Form::kGlobs:
      return "list of globs";
    case Form::kCommand:
      return "list of text";
    case Form::kChoices:
      return "list of choices";
    case Form::kEnvironment:
    case Form::kProperties:
      return "names with text";
    case Form::kSecrets:
      return "names with places";
    case Form::kFragment:
      return "fields of a pod template";
    case Form::kTopic:
      return "topic";
    case Form::kStreamStart:
    case Form::kStreamEnd:
      return "place in a topic";
  }
  return "unknown";
}

std::string BoundsText(const Field& field) {
  switch (field.form) {
    case Form::kText:
    case Form::kPath:
      return fmt::format("up to {} bytes", kTextBytesMax);
    case Form::kName:
      return "1 to 63 of a-z, 0-9, -";
    case Form::kChoice:
    case Form::kChoices:
      return fmt::format("{}", fmt::join(field.choices, ", "));
    case Form::kTopic:
      return "1 to 249 of a-z, A-Z, 0-9, ., _, -";
    case Form::kStreamStart:
      return "earliest, latest, a time, offsets";
    case Form::kStreamEnd:
      return "never, now, a time, offsets";
    case Form::kAddress:
      return "IPv6 in brackets";
    case Form::kHost:
      return "an address or a name";
    case Form::kPorts:
      return "first-last, one port, or 0";
    case Form::kWhole:
      return fmt::format("{} to {}", field.min, field.max);
    case Form::kNumber:
      return fmt::format("{:g} to {:g}", static_cast<double>(field.min) / 1000,
                         static_cast<double>(field.max) / 1000);
    case Form::kBool:
      return "";
    case Form::kFragment:
      return fmt::format("up to {}", FormatMemory(field.max));
    case Form::kDuration:
      return fmt::format("{} to {}{}", FormatDuration(milliseconds(field.min)),
                         FormatDuration(milliseconds(field.max)),
                         field.whole_seconds ? ", whole seconds" : "");
    case Form::kMemory:
      return fmt::format("{} to {}", FormatMemory(field.min), FormatMemory(field.max));
    case Form::kCores:
      return fmt::format("{} to {}", CoresText(field.min), CoresText(field.max));
    case Form::kGlobs:
    case Form::kCommand:
    case Form::kEnvironment:
    case Form::kProperties:
    case Form::kSecrets:
      return field.min > 0 ? fmt::format("{} to {} entries", field.min, field.max)
                           : fmt::format("up to {} entries", field.max);
  }
  return "";
}

std::string DefaultText(const Field& field) {
  if (field.required) return "required";
  if (!field.default_text.empty()) return field.default_text;
  JobSpec job;
  DatasetDraft dataset;
  std::string unused;
  const Target target = field.target({.job = &job, .dataset = &dataset, .unused = &unused});
  return std::visit([](const auto* value) { return ValueText(*value); }, target);
}

std::string FieldTableMarkdown() {
  std::string table =
      "| field | type | default | bounds | on resume | meaning |\n| --- | --- | --- | --- | --- | "
      "--- |\n";
  constexpr const char* kOnResume[] = {"fixed", "may change", "may grow"};
  for (const Field& field : JobFields()) {
    table += fmt::format("| `{}` | {} | {} | {} | {} | {} |\n", field.path, TypeText(field),
                         DefaultText(field), BoundsText(field),
                         kOnResume[static_cast<size_t>(field.on_resume)], field.text);
  }
  return table;
}

}  // namespace muster::job_file
