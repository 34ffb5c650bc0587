#include "cli/simulate/described_file.h"

#include <gmock/gmock.h>

#include "base/file.h"

namespace muster::simulate {
namespace {

using scaler::DescribedSpec;
using scaler::Happening;
using std::chrono::microseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

constexpr uint64_t kMiB = uint64_t{1} << 20;

TEST(DescribedFileTest, EverythingThatThereIs) {
  const absl::StatusOr<DescribedSpec> spec = ReadDescribed(R"(
duration: 15m
records: 5000000
recordsPerMinibatch: 128
machine: {cpu: 16, memory: 32Gi}
budget: {cpu: 12, memory: 8Gi}
ps:
  replicas: 2
  limits: {cpu: 1, memory: 512Mi}
  max: {cpu: 2, memory: 2Gi}
  memory: {start: 300Mi, growthPerMinute: 60Mi, most: 1Gi}
  cpu: 0.5
  requestTime: 250us
  startTime: 5s
worker:
  replicas: 3
  minReplicas: 2
  maxReplicas: 6
  minibatchTime: 20ms
happens:
  - {at: 1m, node: worker-1, slow: 5}
  - {at: 2m, node: ps-0, quota: 0.2, stays: true}
  - {at: 3m, node: worker-5, killed: true}
  - {at: 4m, node: worker-0, exits: 3}
  - {at: 5m, node: worker-0, hangs: true}
  - {at: 90s, node: worker-2, grows: 10Mi}
  - {at: 6m, node: worker-2, preempted: 7m}
)",
                                                           "j.yaml");
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->duration, minutes(15));
  EXPECT_EQ(spec->records, 5'000'000u);
  EXPECT_EQ(spec->records_per_minibatch, 128u);
  EXPECT_EQ(spec->machine.cpus, 16);
  EXPECT_EQ(spec->budget.memory_bytes, 8192 * kMiB);
  EXPECT_EQ(spec->server.replicas, 2u);
  EXPECT_EQ(spec->server.limits.memory_bytes, 512 * kMiB);
  EXPECT_EQ(spec->server.max.cpus, 2);
  EXPECT_EQ(spec->server.memory_start, 300 * kMiB);
  EXPECT_EQ(spec->server.memory_growth_per_minute, 60 * kMiB);
  EXPECT_EQ(spec->server.memory_most, 1024 * kMiB);
  EXPECT_EQ(spec->server.cpus, 0.5);
  EXPECT_EQ(spec->server.time, microseconds(250));
  EXPECT_EQ(spec->server.start, seconds(5));
  EXPECT_EQ(spec->worker.replicas, 3u);
  EXPECT_EQ(spec->workers_min, 2u);
  EXPECT_EQ(spec->workers_max, 6u);
  EXPECT_EQ(spec->worker.time, microseconds(20'000));
  ASSERT_THAT(spec->happenings, SizeIs(7));
  EXPECT_EQ(std::get<Happening::Preempted>(spec->happenings[6].what).no_room, minutes(7));
  EXPECT_EQ(std::get<Happening::Slow>(spec->happenings[0].what).factor, 5);
  EXPECT_FALSE(spec->happenings[0].stays);
  EXPECT_EQ(std::get<Happening::Quota>(spec->happenings[1].what).cpus, 0.2);
  EXPECT_TRUE(spec->happenings[1].stays);
  EXPECT_TRUE(std::holds_alternative<Happening::Killed>(spec->happenings[2].what));
  EXPECT_EQ(std::get<Happening::Exits>(spec->happenings[3].what).code, 3);
  EXPECT_TRUE(std::holds_alternative<Happening::Hangs>(spec->happenings[4].what));
  EXPECT_EQ(std::get<Happening::Grows>(spec->happenings[5].what).bytes_per_minute, 10 * kMiB);
  EXPECT_EQ(spec->happenings[5].at, seconds(90));
  EXPECT_EQ(spec->happenings[5].node, "worker-2");
}

TEST(DescribedFileTest, TheExampleOfTheDocumentation) {
  const absl::StatusOr<std::string> page = ReadFile(MUSTER_SOURCE_DIR "/docs/cli.md", 1 << 20);
  ASSERT_TRUE(page.ok()) << page.status();
  const size_t begin = page->find("```yaml\nduration:");
  ASSERT_NE(begin, std::string::npos);
  const size_t text = page->find('\n', begin) + 1;
  const std::string example = page->substr(text, page->find("```", text) - text);
  const absl::StatusOr<DescribedSpec> spec = ReadDescribed(example, "example");
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->happenings.size(), 6u);
}

TEST(DescribedFileTest, LittleIsEnough) {
  const absl::StatusOr<DescribedSpec> spec = ReadDescribed("duration: 1m", "j.yaml");
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->worker.replicas, 2u);
}

TEST(DescribedFileTest, ErrorsSayWhereAndWhat) {
  struct Case {
    const char* text;
    const char* where;
    const char* what;
  };
  for (const Case& c : std::vector<Case>{
           {"", "j.yaml:1:1: ", "the description: is nothing"},
           {"- 1", "j.yaml:1:1: ", "is a list"},
           {"duration: [", "j.yaml:", "not valid YAML"},
           {"duraton: 5m", "j.yaml:1:1: ", "duraton: is no field; did you mean duration?"},
           {"duration: 5m\nduration: 6m", "j.yaml:2:1: ", "twice"},
           {"duration: soon", "j.yaml:1:11: ", "duration: "},
           {"duration: 1500ms", "j.yaml:1:11: ", "whole number of seconds"},
           {"duration: {a: 1}", "j.yaml:1:11: ", "must be a value"},
           {"duration: 48h", "j.yaml: ", "must be 1 s to a day"},
           {"worker:\n  minibatchTime: 2000s",
            "j.yaml:2:18: ", "worker.minibatchTime: must be at most 1000 s"},
           {"worker:\n  memory: {begin: 1Mi}", "j.yaml:2:12: ", "worker.memory.begin: is no field"},
           {"ps:\n  replicas: 65", "j.yaml: ", "replicas is 65"},
           {"ps:\n  replicas: 99999999999", "j.yaml:2:13: ", "ps.replicas: must be at most"},
           {"machine: 5", "j.yaml:1:10: ", "machine: is '5', must be a group"},
           {"happens: {at: 5s}", "j.yaml:1:10: ", "happens: is a group"},
           {"happens:\n  - {at: 5s, node: ps-0}", "j.yaml:2:5: ", "happens[0]: must have"},
           {"happens:\n  - {at: 5s, node: ps-0, slow: 2, killed: true}",
            "j.yaml:2:5: ", "happens[0]: must have"},
           {"happens:\n  - {at: 5s, node: ps-0, slow: 0}", "j.yaml:2:", "no factor"},
           {"happens:\n  - {at: 5s, node: ps-0, killed: false}", "j.yaml:2:", "can only be true"},
           {"happens:\n  - {at: 5s, node: ps-0, exits: 256}", "j.yaml:2:", "at most 255"},
           {"happens:\n  - {at: 5s, node: ps-0, killed: true}\n  - {at: 5s, node: ps-7, killed: "
            "true}",
            "j.yaml:3:5: ", "happens[1]: there is no node 'ps-7'"},
           {"happens:\n  - {at: 1h, node: ps-0, killed: true}", "j.yaml:2:5: ", "at 3600 s"},
       }) {
    const absl::Status status = ReadDescribed(c.text, "j.yaml").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << c.text;
    EXPECT_THAT(std::string(status.message()), StartsWith(c.where)) << c.text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.what)) << c.text;
  }
}

TEST(DescribedFileTest, TooMuchHappens) {
  std::string text = "happens:\n";
  for (size_t i = 0; i <= kHappeningsMax; ++i) text += "- {at: 5s, node: ps-0, slow: 2}\n";
  EXPECT_THAT(std::string(ReadDescribed(text, "j.yaml").status().message()),
              HasSubstr("at most 1000"));
}

}  // namespace
}  // namespace muster::simulate
