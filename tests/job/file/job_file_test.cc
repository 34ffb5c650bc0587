#include "job/file/job_file.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "job/security.h"
#include "tests/support/status_matchers.h"

namespace muster {
namespace {

using ::muster::testing::IsOk;
using ::muster::testing::StatusIs;
using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;

constexpr char kJob[] = R"(apiVersion: muster/v1
kind: TrainingJob
metadata: {name: flights}
spec:
  seed: 7
  partitions: 128
  stateDirectory: state
  snapshots: {interval: 5s}
  datasets:
    - {name: train, files: [train-*.csv], header: true, epochs: 3, minibatchSize: 512,shuffle: true}
    - name: test
      files: [/data/test.csv]
      mode: evaluate
  replicaSpecs:
    ps:     {replicas: 2, resources: {requests: {cpu: 500m, memory: 256Mi}, limits: {memory: 1Gi}}}
    worker: {replicas: 3, command: [./flights_trainer, --fast], env: {OMP_NUM_THREADS: 1}}
  leases: {duration: 2s, failuresMax: 5}
  servers: {threads: 2}
  training: {wireEncoding: bfloat16, rejectedRecordsMax: 10, failedShardsMax: 7}
  restarts: {backoffMax: 1m}
  drainTimeout: 1h
)";

absl::StatusOr<JobSpec> Parse(const std::string& text) {
  return ParseJobFile(text, "job.yaml", "/jobs/flights");
}

/// kJob with the first `from` replaced.
std::string With(const std::string& from, const std::string& to) {
  std::string text = kJob;
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(JobFileTest, ABucketIsAPlaceWithItsOptions) {
  MUSTER_ASSERT_OK_AND_ASSIGN(
      const JobSpec job,
      Parse(With("snapshots: {interval: 5s}",
                 "snapshots: {directory: 's3://bucket/a', s3: {endpoint: 'http://localhost:9000', "
                 "region: eu-1, pathStyle: true, credentialsFile: keys, caFile: /ca.pem}}")));
  MUSTER_ASSERT_OK_AND_ASSIGN(const S3Place place, ParseS3Place(job.snapshot_directory));
  EXPECT_EQ(place, (S3Place{"bucket",
                            "a",
                            {.endpoint = "http://localhost:9000",
                             .region = "eu-1",
                             .path_style = true,
                             .credentials_file = "/jobs/flights/keys",
                             .ca_file = "/ca.pem"}}));
  const auto refused = [](const std::string& snapshots, const std::string& words) {
    EXPECT_THAT(Parse(With("{interval: 5s}", snapshots)),
                testing::StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(words)));
  };
  refused("{directory: 's3://B'}", "spec.snapshots.directory: 's3://B': 'B' is not the name");
  refused("{directory: 's3://bucket?region=x'}", "has no '?'");
  refused("{s3: {endpoint: localhost}}", "spec.snapshots.s3.endpoint: expected an endpoint");
  refused("{s3: {region: 'a:b'}}", "spec.snapshots.s3.region: expected a region");
}

TEST(JobFileTest, EveryKindOfFieldIsRead) {
  MUSTER_ASSERT_OK_AND_ASSIGN(const JobSpec job, Parse(kJob));
  EXPECT_EQ(job.name, "flights");
  EXPECT_EQ(job.seed, 7u);
  EXPECT_EQ(job.partitions, 128u);
  EXPECT_EQ(job.state_directory, "/jobs/flights/state");
  EXPECT_EQ(job.snapshot_directory, "/jobs/flights/state/snapshots");
  EXPECT_EQ(job.snapshot_interval, milliseconds(5000));
  ASSERT_EQ(job.datasets.size(), 2u);
  EXPECT_EQ(job.datasets[0].name, "train");
  EXPECT_THAT(std::get<LinesSpec>(job.datasets[0].source).files,
              ElementsAre("/jobs/flights/train-*.csv"));
  EXPECT_TRUE(HasHeader(job.datasets[0].source));
  EXPECT_EQ(job.datasets[0].epochs, 3u);
  EXPECT_EQ(job.datasets[0].minibatch_size, 512u);
  EXPECT_EQ(job.datasets[0].minibatches_per_shard, 16u);
  EXPECT_EQ(job.datasets[0].shuffle, Shuffle::kAll);
  EXPECT_EQ(job.datasets[1].mode, DatasetMode::kEvaluate);
  EXPECT_THAT(std::get<LinesSpec>(job.datasets[1].source).files, ElementsAre("/data/test.csv"));
  EXPECT_EQ(job.ps.replicas, 2u);
  EXPECT_EQ(job.ps.requests.cpu, 0.5);
  EXPECT_EQ(job.ps.requests.memory_bytes, 256u << 20);
  EXPECT_EQ(job.ps.limits.memory_bytes, 1u << 30);
  EXPECT_FALSE(job.ps.limits.cpu.has_value());
  EXPECT_EQ(job.worker.replicas, 3u);
  EXPECT_THAT(job.worker.command, ElementsAre("/jobs/flights/flights_trainer", "--fast"));
  EXPECT_THAT(job.worker.env, ElementsAre(Pair("OMP_NUM_THREADS", "1")));
  EXPECT_EQ(job.leases.duration, milliseconds(2000));
  EXPECT_EQ(job.leases.failures_max, 5u);
  EXPECT_EQ(job.leases.heartbeat_interval, milliseconds(500));
  EXPECT_EQ(job.servers.threads, 2u);
  EXPECT_EQ(job.training.wire_encoding, "bfloat16");
  EXPECT_EQ(job.training.rejected_records_max, 10u);
  EXPECT_EQ(job.training.failed_shards_max, 7u);
  EXPECT_EQ(job.restarts.backoff_max, milliseconds(60'000));
  EXPECT_EQ(job.drain_timeout, milliseconds(3'600'000));
  EXPECT_EQ(job.master_address, "127.0.0.1:0");
}

std::vector<uint32_t> MinibatchesPerShard(const std::string& datasets) {
  const auto job =
      Parse("apiVersion: muster/v1\nkind: TrainingJob\nmetadata: {name: a}\nspec:\n  datasets:\n" +
            datasets + "  replicaSpecs: {worker: {command: [t]}}\n");
  EXPECT_THAT(job, IsOk());
  std::vector<uint32_t> found;
  if (!job.ok()) return found;
  for (const DatasetSpec& dataset : job->datasets) found.push_back(dataset.minibatches_per_shard);
  return found;
}

TEST(JobFileTest, SeveralTrainDatasetsOfFilesHaveSmallShards) {
  const std::string a = "    - {name: a, files: [x]}\n";
  const std::string test = "    - {name: test, files: [x], mode: evaluate}\n";
  const std::string topic = "    - {name: t, kafka: {brokers: ['b:1'], topic: t}}\n";
  EXPECT_THAT(MinibatchesPerShard(a + test + topic), ElementsAre(16, 16, 16)) << "one of files";
  EXPECT_THAT(MinibatchesPerShard(a + test + topic + "    - {name: b, files: [y]}\n"),
              ElementsAre(4, 16, 16, 4));
  EXPECT_THAT(MinibatchesPerShard(a + "    - {name: b, files: [y], minibatchesPerShard: 16}\n"),
              ElementsAre(4, 16))
      << "what is set stays";
  EXPECT_THAT(MinibatchesPerShard("    - {name: c, files: [x], minibatchSize: 128}\n"
                                  "    - {name: d, files: [x], minibatchSize: 4096}\n"
                                  "    - {name: e, files: [x], minibatchSize: 1}\n"),
              ElementsAre(8, 4, 16))
      << "not too few records";
}

TEST(JobFileTest, TheSmallestJobHasDefaultsEverywhereElse) {
  MUSTER_ASSERT_OK_AND_ASSIGN(const JobSpec job,
                              Parse("apiVersion: muster/v1\n"
                                    "kind: TrainingJob\n"
                                    "metadata: {name: a}\n"
                                    "spec:\n"
                                    "  datasets: [{name: d, files: [x]}]\n"
                                    "  replicaSpecs: {worker: {command: [t]}}\n"));
  EXPECT_EQ(job.partitions, 64u);
  EXPECT_EQ(job.ps.replicas, 1u);
  EXPECT_EQ(job.state_directory, "/jobs/flights/state");
  EXPECT_THAT(job.worker.command, ElementsAre("t"));  // looked up in PATH
}

TEST(JobFileTest, ErrorsSayWhereWhatAndWhatToWrite) {
  struct Case {
    std::string from;
    std::string to;
    std::vector<std::string> what;
  };
  const Case cases[] = {
      {"minibatchSize",
       "minibatchSzie",
       {"job.yaml:10:68", "spec.datasets[0]", "'minibatchSzie'", "did you mean 'minibatchSize'?"}},
      {"seed: 7", "sed: 7", {"job.yaml:5:3", "did you mean 'seed'?"}},
      {"partitions: 128", "interval: 1s", {"job.yaml:6:3", "mean spec.snapshots.interval?"}},
      {"partitions: 128", "zzzzzz: 1s", {"the fields here are budget, datasets, drainTimeout"}},
      {"seed: 7", "seed: 7\n  seed: 8", {"6:3: spec.seed: is given twice (first in line 5)"}},
      {"partitions: 128",
       "partitions: many",
       {"job.yaml:6:15: spec.partitions", "'many' is not a whole number"}},
      {"partitions: 128", "partitions: 0", {"0 is out of bounds (1 to 65536)"}},
      {"partitions: 128", "partitions: 65537", {"65537 is out of bounds"}},
      {"partitions: 128", "partitions: '128'", {"expected whole number", "remove the quotes"}},
      {"partitions: 128", "partitions: [128]", {"expected whole number", "got a list"}},
      {"partitions: 128", "partitions:", {"expected whole number", "got nothing"}},
      {"header: true", "header: yes", {"'yes' is neither true nor false"}},
      {"interval: 5s", "interval: 5", {"job.yaml:8:25", "'5' is not a duration", "unit"}},
      {"interval: 5s", "interval: 5ms", {"5ms is out of bounds (100ms to 24h)"}},
      {"memory: 256Mi", "memory: 256MB", {"'256MB' is not an amount of memory"}},
      {"cpu: 500m", "cpu: 0", {"0 is out of bounds (1m to 4096)"}},
      {"mode: evaluate",
       "mode: evaluation",
       {"expected train, evaluate", "did you mean 'evaluate'?"}},
      {"mode: evaluate",
       "mode: evaluate\n      epochs: 2",
       {"job.yaml:14:15", "epochs: is allowed in mode train"}},
      {"wireEncoding: bfloat16", "wireEncoding: int8", {"expected float32, float16, bfloat16"}},
      {"files: [train-*.csv]", "files: train.csv", {"expected list of globs", "write [train.csv]"}},
      {"files: [train-*.csv]", "files: []", {"0 entries are out of bounds"}},
      {"files: [train-*.csv]", "files: ['']", {"entry 1 must be text"}},
      {"files: [train-*.csv]", "files: [[a]]", {"entry 1 must be text, not a list"}},
      {"command: [./flights_trainer, --fast]", "command: ./t", {"write [./t]"}},
      {"command: [./flights_trainer, --fast], ",
       "",
       {"job.yaml:16:13: spec.replicaSpecs.worker.command: is missing"}},
      {"name: flights", "name: Flights", {"job.yaml:3:18", "'Flights' is not a name"}},
      {"{name: train,", "{name: test,", {"job.yaml:11:13", "two datasets have the name 'test'"}},
      {"metadata: {name: flights}", "", {"metadata.name: is missing"}},
      {"muster/v1",
       "muster/v2",
       {"job.yaml:1:13: apiVersion: expected muster/v1, got 'muster/v2'"}},
      {"replicas: 2,", "replicas: 200,", {"200 servers cannot share 128 partitions"}},
      {"memory: 1Gi", "memory: 128Mi", {"the limit of 128Mi is less than the request of 256Mi"}},
      {"duration: 2s", "duration: 1s", {"more than a third of spec.leases.duration (1s)"}},
      {"backoffMax: 1m", "backoffMax: 0s", {"less than spec.restarts.backoffInitial"}},
      {"env: {OMP_NUM_THREADS: 1}", "env: {1X: 1}", {"'1X' is not a variable name"}},
      {"env: {OMP_NUM_THREADS: 1}", "env: {A: }", {"A must have text", "write \"\" for empty"}},
      {"env: {OMP_NUM_THREADS: 1}", "env: {MUSTER_START: 1}", {"set by muster run"}},
      {"servers: {threads: 2}", "servers: [threads]", {"expected a group of fields, got a list"}},
      {"servers: {threads: 2}",
       "servers: {timeout: 500ms}",
       {"spec.servers.heartbeatInterval", "third of spec.servers.timeout"}},
      {"drainTimeout: 1h", "leases: {maxAge: 1h}", {"spec.leases: is given twice"}},
      {"mode: evaluate", "mode: [", {"this is not valid YAML"}},
  };
  for (const Case& c : cases) {
    const auto parsed = Parse(With(c.from, c.to));
    ASSERT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument) << c.to;
    for (const std::string& what : c.what) {
      EXPECT_THAT(std::string(Message(parsed.status())), HasSubstr(what)) << c.to;
    }
  }
}

TEST(JobFileTest, WhatAnErrorRepeatsIsOneShortLine) {
  std::string lines = "\"";
  for (int i = 0; i < 2000; ++i) lines += "\\nx";
  lines += "\"";
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"seed: 7", "seed: " + lines},
           {"interval: 5s", "interval: " + lines},
           {"spec:", lines + ": 1\n" + lines + ": 2\nspec:"},
           {"env: {OMP_NUM_THREADS: 1}", "env: " + lines},
           {"env: {OMP_NUM_THREADS: 1}", "env: {A: 1, A" + std::string(3000, 'A') + ": [1]}"},
           {"[train-*.csv]", lines}}) {
    const auto parsed = Parse(With(from, to));
    const std::string message(Message(parsed.status()));
    EXPECT_THAT(message, HasSubstr("job.yaml:")) << from;
    EXPECT_LT(message.size(), 3000u) << from;
    EXPECT_LE(std::count(message.begin(), message.end(), '\n'), 1) << message;
  }
}

TEST(JobFileTest, WhatMusterRunSetsCannotBeGiven) {
  for (const char* name :
       {"MUSTER_MASTER", "MUSTER_NODE", "MUSTER_SLOT_FILE", "MUSTER_START", "MUSTER_JOB_ID"}) {
    const auto parsed =
        Parse(With("env: {OMP_NUM_THREADS: 1}", std::string("env: {") + name + ": 1}"));
    EXPECT_THAT(std::string(Message(parsed.status())), HasSubstr("set by muster run")) << name;
  }
}

TEST(JobFileTest, AllErrorsAreToldInTheOrderOfTheFile) {
  std::string text = With("seed: 7", "seed: x");
  text.replace(text.find("name: flights"), 13, "name: Fly_By");
  text.replace(text.find("drainTimeout"), 12, "drainTimeuot");
  const auto parsed = Parse(text);
  const std::string message(Message(parsed.status()));
  const size_t name = message.find("job.yaml:3:");
  const size_t seed = message.find("\njob.yaml:5:");
  const size_t drain = message.find("\njob.yaml:21:");
  EXPECT_LT(name, seed);
  EXPECT_LT(seed, drain);
  EXPECT_NE(drain, std::string::npos) << message;
  EXPECT_EQ(std::count(message.begin(), message.end(), '\n'), 2) << message;
}

TEST(JobFileTest, AtMostTwentyErrorsAreTold) {
  std::string fields;
  for (int i = 0; i < 30; ++i) fields += "  unknown" + std::to_string(i) + ": 1\n";
  const auto parsed = Parse(With("  seed: 7\n", fields));
  const std::string message(Message(parsed.status()));
  EXPECT_EQ(std::count(message.begin(), message.end(), '\n'), 20) << message;
  EXPECT_THAT(message, HasSubstr("job.yaml: 10 more errors"));
}

TEST(JobFileTest, AWrongValueDoesNotBreakRulesBesides) {
  const auto parsed = Parse(With("duration: 2s", "duration: 1x, heartbeatInterval: 9s"));
  EXPECT_THAT(std::string(Message(parsed.status())),
              AllOf(HasSubstr("'1x'"), Not(HasSubstr("third"))));
}

TEST(JobFileTest, AddressesOfOtherMachinesAreReadAndChecked) {
  const auto with_address = [](const std::string& address, const std::string& more) {
    return Parse(With("drainTimeout: 1h", "master: {address: '" + address + "', advertise: m-1}" +
                                              "\n  security: {insecure: " + more + "}"));
  };
  for (const char* address : {"127.0.0.1:0", "127.9.8.7:7070", "localhost:20000", "[::1]:65535"}) {
    MUSTER_ASSERT_OK_AND_ASSIGN(const JobSpec job, with_address(address, "false"));
    EXPECT_EQ(job.master_address, address);
    EXPECT_EQ(job.master_advertise, "m-1");
  }
  for (const char* address : {"0.0.0.0:7070", "10.0.0.1:7070", "[::]:7070", "example.org:80",
                              "128.0.0.1:1", "127.0.0.1.example.org:1", "[::ffff:10.0.0.1]:1"}) {
    MUSTER_ASSERT_OK_AND_ASSIGN(const JobSpec job, with_address(address, "false"));
    EXPECT_TRUE(UsesTls(job)) << address;
    MUSTER_ASSERT_OK_AND_ASSIGN(const JobSpec insecure, with_address(address, "true"));
    EXPECT_FALSE(UsesTls(insecure)) << address;
  }
  for (const char* address :
       {"127.0.0.1", "127.0.0.1:", ":7070", "127.0.0.1:65536", "fd00::1:80"}) {
    EXPECT_THAT(with_address(address, "true"),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("is not host:port")))
        << address;
  }
}

TEST(JobFileTest, AWildcardMasterIsReachedByAName) {
  const auto with_master = [](const std::string& master) {
    return Parse(
        With("drainTimeout: 1h", "master: {" + master + "}\n  security: {insecure: true}"));
  };
  EXPECT_THAT(with_master("address: '[::]:7070'"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("set spec.master.advertise")));
  EXPECT_THAT(with_master("address: '0.0.0.0:7070', advertise: 0.0.0.0"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no process can connect")));
  EXPECT_TRUE(with_master("address: '0.0.0.0:7070', advertise: gpu-1.example").ok());
}

TEST(JobFileTest, WhereServersListen) {
  const auto with_servers = [](const std::string& servers) {
    return Parse(With("ps:     {replicas: 2,", "ps:     {replicas: 2, " + servers + ","));
  };
  MUSTER_ASSERT_OK_AND_ASSIGN(
      const JobSpec job,
      with_servers("address: '::1', advertise: a.b, ports: 7100-7199, joined: 1"));
  EXPECT_EQ(job.server_listen.address, "::1");
  EXPECT_EQ(job.server_listen.advertise, "a.b");
  EXPECT_EQ(job.server_listen.ports, "7100-7199");
  EXPECT_EQ(job.servers_joined, 1u);
  EXPECT_THAT(with_servers("ports: 9-1"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no range of ports")));
  EXPECT_THAT(with_servers("address: a/b"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("is not a host")));
  MUSTER_ASSERT_OK_AND_ASSIGN(const JobSpec elsewhere, with_servers("address: 10.0.0.1"));
  EXPECT_TRUE(UsesTls(elsewhere));
  EXPECT_THAT(with_servers("joined: 3"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("cannot join a job")));
}

TEST(JobFileTest, Security) {
  const auto with_security = [](const std::string& security) {
    return Parse(With("drainTimeout: 1h", "security: {" + security + "}"));
  };
  MUSTER_ASSERT_OK_AND_ASSIGN(const JobSpec plain, with_security("tls: auto, insecure: true"));
  EXPECT_EQ(plain.security.tls, TlsUse::kAuto);
  EXPECT_TRUE(plain.security.insecure);
  EXPECT_EQ(plain.security.certificates, "");
  MUSTER_ASSERT_OK_AND_ASSIGN(const JobSpec own,
                              with_security("tls: always, certificates: ../keys/"));
  EXPECT_EQ(own.security.tls, TlsUse::kAlways);
  EXPECT_EQ(own.security.certificates, "/jobs/keys");
  EXPECT_THAT(with_security("tls: never"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("expected auto, always")));
  EXPECT_THAT(with_security("tls: always, insecure: true"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("contradicts")));
}

TEST(JobFileTest, PathsAreResolvedAndTheFolderIsNoPattern) {
  MUSTER_ASSERT_OK_AND_ASSIGN(const JobSpec job, ParseJobFile(With("stateDirectory: state\n",
                                                                   "stateDirectory: ../runs/a/\n"),
                                                              "job.yaml", "/jobs/[1]/x"));
  EXPECT_EQ(job.state_directory, "/jobs/[1]/runs/a");
  EXPECT_THAT(std::get<LinesSpec>(job.datasets[0].source).files,
              ElementsAre("/jobs/\\[1\\]/x/train-*.csv"));
  EXPECT_EQ(job.worker.command[0], "/jobs/[1]/x/flights_trainer");
}

TEST(JobFileTest, WeightsOfEpochsAreKeptByAMetricOfAnEvaluateDataset) {
  const std::string training = "training: {wireEncoding: bfloat16, ";
  MUSTER_ASSERT_OK_AND_ASSIGN(
      const JobSpec job,
      Parse(With(training, training + "keep: {best: test/auc, every: 2}, "
                                      "stopEarly: {metric: auc, patience: 4, minDelta: 0.001}, ")));
  EXPECT_EQ(job.training.keep_best, "test/auc");
  EXPECT_EQ(job.training.keep_every, 2u);
  EXPECT_EQ(job.training.keep_last, 5u);
  EXPECT_EQ(job.training.stop_early_metric, "auc");
  EXPECT_EQ(job.training.stop_early_patience, 4u);
  EXPECT_DOUBLE_EQ(job.training.stop_early_min_delta, 0.001);
  std::string unjudged = With(training, training + "keep: {best: auc}, ");
  unjudged.erase(unjudged.find("      mode: evaluate\n"), 21);
  EXPECT_THAT(Parse(unjudged), StatusIs(absl::StatusCode::kInvalidArgument,
                                        HasSubstr("there is no dataset of mode evaluate")));
}

TEST(JobFileTest, OversizedAndEmptyFilesAreRefused) {
  EXPECT_THAT(
      Parse(std::string(kJobFileBytesMax + 1, '#')),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("job.yaml:1:1: the file has")));
  EXPECT_THAT(Parse(""), StatusIs(absl::StatusCode::kInvalidArgument,
                                  AllOf(HasSubstr("apiVersion: is missing"),
                                        HasSubstr("spec.datasets: is missing"))));
  EXPECT_THAT(Parse("just text"), StatusIs(absl::StatusCode::kInvalidArgument,
                                           HasSubstr("expected a group of fields")));
  EXPECT_THAT(Parse(With("seed: 7", "seed: 7\n  stateDirectory: " + std::string(5000, 'x'))),
              Not(IsOk()));
}

}  // namespace
}  // namespace muster
