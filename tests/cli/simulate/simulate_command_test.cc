#include "cli/simulate/simulate_command.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "scaler/history/history_writer.h"
#include "scaler/simulate/described_job.h"
#include "tests/support/temp_dir.h"

namespace muster::simulate {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr const char* kSlowWorker = R"(
duration: 5m
happens:
  - {at: 2m, node: worker-1, slow: 5}
)";

class SimulateCommandTest : public ::testing::Test {
 protected:
  std::string File(const std::string& name, const std::string& text) {
    const std::string path = dir_.File(name);
    EXPECT_TRUE(WriteFileAtomically(path, text).ok());
    return path;
  }
  int Run(const SimulateOptions& options) {
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    const int exit_code = SimulateCommand(options);
    out_ = ::testing::internal::GetCapturedStdout();
    err_ = ::testing::internal::GetCapturedStderr();
    return exit_code;
  }
  /// A state directory with the history of a job with a slow worker.
  std::string Recorded() {
    scaler::DescribedSpec spec;
    spec.duration = minutes(4);
    spec.happenings = {
        {.at = seconds(120), .node = "worker-1", .what = scaler::Happening::Slow{5}}};
    scaler::HistoryWriter writer(dir_.path() + "/state/scaler/history",
                                 {.run_id = "r", .job = "j", .shape = {}});
    scaler::DescribedJob job(spec);
    while (!job.over()) {
      job.Tick();
      writer.Append(job.view(), hours(24 * 365) + job.elapsed());
    }
    return dir_.path() + "/state";
  }

  testing::TempDir dir_;
  std::string out_;
  std::string err_;
};

TEST_F(SimulateCommandTest, ADescribedJob) {
  SimulateOptions options{.described = File("j.yaml", kSlowWorker)};
  EXPECT_EQ(Run(options), kExitSucceeded) << err_;
  EXPECT_THAT(out_, HasSubstr("decision worker-1  restart"));
  EXPECT_THAT(out_, HasSubstr("outcome"));
  EXPECT_THAT(err_, IsEmpty());
  options.policies = {"hang"};
  EXPECT_EQ(Run(options), kExitSucceeded);
  EXPECT_THAT(out_, Not(HasSubstr("straggler")));
  EXPECT_THAT(out_, HasSubstr("hang "));
  options = {.described = options.described, .dry_run = true, .output = OutputFormat::kJson};
  EXPECT_EQ(Run(options), kExitSucceeded);
  const nlohmann::json json = nlohmann::json::parse(out_);
  EXPECT_EQ(json.at("source"), "described");
  EXPECT_EQ(json.at("events").at(0).at("dry_run"), true);
}

TEST_F(SimulateCommandTest, ThresholdsOfAJobFile) {
  const std::string job = File("job.yaml", R"(
apiVersion: muster/v1
kind: TrainingJob
metadata: {name: j}
spec:
  stateDirectory: state
  datasets: [{name: train, files: ["x"]}]
  scaler: {pausedPolicies: [worker-straggler]}
  replicaSpecs: {ps: {replicas: 1}, worker: {replicas: 2, command: [x]}}
)");
  EXPECT_EQ(Run({.described = File("j.yaml", kSlowWorker), .job_file = job}), kExitSucceeded)
      << err_;
  EXPECT_THAT(out_, Not(HasSubstr("decision")));
  EXPECT_THAT(out_, HasSubstr("not done, because the policy worker-straggler is paused"));
}

TEST_F(SimulateCommandTest, AHistoryOfAStateDirectory) {
  const std::string state = Recorded();
  EXPECT_EQ(Run({.history = state}), kExitSucceeded) << err_;
  EXPECT_THAT(out_, HasSubstr("1971-01-01T00:02"));
  EXPECT_THAT(out_, HasSubstr("decision worker-1  restart"));
  EXPECT_EQ(Run({.history = state + "/scaler/history", .to = "1m"}), kExitSucceeded);
  EXPECT_THAT(out_, Not(HasSubstr("restart")));
  EXPECT_EQ(Run({.history = state, .from = "1971-01-01T01:00:00Z"}), kExitSucceeded);
  EXPECT_THAT(err_, HasSubstr("nothing of that time"));
}

TEST_F(SimulateCommandTest, WhatIsDamagedIsSaid) {
  const std::string state = Recorded();
  const std::string path = state + "/scaler/history/history-00000001.jsonl";
  const std::string text = *ReadFile(path, 1 << 20);
  ASSERT_TRUE(WriteFileAtomically(path, text.substr(0, text.size() - 9)).ok());
  EXPECT_EQ(Run({.history = state}), kExitSucceeded);
  EXPECT_THAT(err_, HasSubstr("1 lines could not be read"));
}

TEST_F(SimulateCommandTest, Refusals) {
  const std::string described = File("j.yaml", kSlowWorker);
  EXPECT_EQ(Run({}), kExitUsage);
  EXPECT_EQ(Run({.history = "a", .described = "b"}), kExitUsage);
  EXPECT_EQ(Run({.described = dir_.path() + "/none.yaml"}), kExitUsage);
  EXPECT_THAT(err_, HasSubstr("none.yaml"));
  EXPECT_EQ(Run({.described = File("bad.yaml", "worker: {replica: 3}")}), kExitUsage);
  EXPECT_THAT(err_, HasSubstr("bad.yaml:1:10: worker.replica: is no field; did you mean"));
  EXPECT_EQ(Run({.described = described, .from = "1m"}), kExitUsage);
  EXPECT_EQ(Run({.described = described, .policies = {"worker-stragler"}}), kExitUsage);
  EXPECT_THAT(err_, HasSubstr("did you mean worker-straggler?"));
  EXPECT_EQ(Run({.described = described, .job_file = dir_.path() + "/none.yaml"}), kExitUsage);
  EXPECT_EQ(Run({.history = dir_.path()}), kExitUnreachable);
  EXPECT_THAT(err_, HasSubstr("has no history"));
  EXPECT_EQ(Run({.history = Recorded(), .from = "soon"}), kExitUsage);
  EXPECT_EQ(Run({.history = Recorded(), .from = "1m", .to = "30s"}), kExitUsage);
}

TEST(ParseMomentTest, DurationsAndTimes) {
  EXPECT_EQ(*ParseMoment("90s", hours(5)), hours(5) + seconds(90));
  EXPECT_EQ(*ParseMoment("1970-01-02T03:04:05Z", hours(5)), hours(27) + minutes(4) + seconds(5));
  EXPECT_EQ(*ParseMoment("1970-01-01T00:00:01.5Z", hours(5)), std::chrono::milliseconds(1'500));
  for (const char* text :
       {"", "5", "yesterday", "1970-13-01T00:00:00Z", "1970-01-01T24:00:00Z", "1970-01-01T00:00:00",
        "1970-01-01T00:00:00Zx", "1969-01-01T00:00:00Z"}) {
    EXPECT_EQ(ParseMoment(text, hours(5)).status().code(), absl::StatusCode::kInvalidArgument)
        << text;
  }
}

}  // namespace
}  // namespace muster::simulate
