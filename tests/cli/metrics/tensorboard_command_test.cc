#include "cli/metrics/tensorboard_command.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "scaler/history/history_writer.h"
#include "tests/cli/metrics/event_reader.h"
#include "tests/cli/metrics/stopped_job.h"

namespace muster::metrics {
namespace {

using ::testing::HasSubstr;

class TensorboardCommandTest : public ::testing::Test {
 protected:
  TensorboardCommandTest() { options_.query.output = OutputFormat::kJson; }

  /// A history of so many seconds, in which 100 records a second were trained.
  void Train(int seconds) {
    scaler::HistoryWriter writer(job_.state() + "/scaler/history",
                                 {.run_id = "r1", .job = "demo", .shape = {}});
    for (int i = 0; i < seconds; ++i) {
      scaler::JobView view;
      view.now = TimePoint(std::chrono::seconds(50 + i));
      view.records_trained = static_cast<uint64_t>(100 * i);
      writer.Append(view, std::chrono::seconds(1'000 + i));
    }
  }
  uint64_t Added() {
    ::testing::internal::CaptureStdout();
    EXPECT_EQ(TensorboardCommand(options_), kExitSucceeded);
    return nlohmann::json::parse(::testing::internal::GetCapturedStdout()).at("points_added");
  }
  std::vector<ReadEvent> Events() const {
    const std::string file = options_.log_directory + "/train/events.out.tfevents.muster";
    return ReadEvents(ReadFile(file, 1 << 20).value_or("")).value();
  }

  StoppedJob job_;
  TensorboardOptions options_{
      .query = {.target = {.job_file = "", .state_directory = job_.state()}},
      .log_directory = job_.File("logs")};
};

TEST_F(TensorboardCommandTest, RatesOfTheHistoryAreAddedOnce) {
  Train(25);
  EXPECT_EQ(Added(), 2u);
  const std::vector<ReadEvent> events = Events();
  ASSERT_EQ(events.size(), 3u);
  EXPECT_THAT(events[0].writer, HasSubstr("muster demo "));
  EXPECT_EQ(events[1].tag, "rates/records_per_second");
  EXPECT_EQ(events[1].step, 1'000u);
  EXPECT_EQ(events[1].wall_seconds, 1'010);
  EXPECT_EQ(events[1].value, 100.0f);
  EXPECT_EQ(Added(), 0u);
  options_.follow = true;
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(TensorboardCommand(options_), kExitSucceeded) << "there is nothing to follow";
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(Events().size(), 3u);
}

TEST_F(TensorboardCommandTest, AJobThatBeganAgainNeedsAnotherFolder) {
  Train(25);
  EXPECT_EQ(Added(), 2u);
  const StoppedJob other("0.1", "id-2");
  options_.query.target.state_directory = other.state();
  EXPECT_EQ(Added(), 0u) << "it has nothing to write there";
  std::filesystem::copy(job_.state() + "/scaler", other.state() + "/scaler",
                        std::filesystem::copy_options::recursive);
  EXPECT_EQ(TensorboardCommand(options_), kExitFailed) << "another job's files lie there";
  EXPECT_EQ(Events().size(), 3u);
}

TEST_F(TensorboardCommandTest, AJobThatNeverRanIsUnreachable) {
  options_.query.target.state_directory = job_.File("nowhere");
  EXPECT_EQ(TensorboardCommand(options_), kExitUnreachable);
}

}  // namespace
}  // namespace muster::metrics
