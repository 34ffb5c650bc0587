#include "scaler/history/history_writer.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/resource.h>

#include <filesystem>

#include "scaler/history/history_reader.h"
#include "tests/scaler/sensor/sensed_job.h"
#include "tests/support/temp_dir.h"

namespace muster::scaler {
namespace {

using std::chrono::hours;
using std::chrono::seconds;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Le;
using ::testing::SizeIs;

class HistoryTest : public ::testing::Test {
 protected:
  HistoryWriter Writer(const std::string& run, const HistoryWriter::Options& options = {}) {
    HistoryHead head{.run_id = run, .job = "j"};
    head.shape.machine.cpus = 8;
    head.shape.roles[NodeRole::kWorker].max.cpus = 3;
    return HistoryWriter(folder_, head, options);
  }
  void Seconds(HistoryWriter* writer, int seconds) {
    for (int i = 0; i < seconds; ++i) {
      const JobView& view = job_.Second();
      writer->Append(view, job_.wall);
    }
  }
  HistoryReader Reader() {
    absl::StatusOr<HistoryReader> reader = HistoryReader::Open(folder_);
    EXPECT_TRUE(reader.ok()) << reader.status();
    return *std::move(reader);
  }
  void Spoil(const std::string& path, const std::string& contents) {
    ASSERT_TRUE(WriteFileAtomically(path, contents).ok());
  }

  testing::TempDir dir_;
  std::string folder_ = dir_.path() + "/history";
  SensedJob job_;
};

TEST_F(HistoryTest, GivesTheViewsThatWereWritten) {
  HistoryWriter writer = Writer("r1");
  job_.status.datasets[0].stream = StreamStatus{.open = true, .lag = 77};
  Seconds(&writer, 20);
  job_.sensor.OnEnd({.node = "worker-1", .start = 1, .at = job_.now});
  Seconds(&writer, 1);
  const JobView& last = job_.sensor.View(job_.kept, job_.now);
  HistoryReader reader = Reader();
  int views = 0;
  const JobView* view = nullptr;
  while (const JobView* next = reader.Next()) {
    view = next;
    EXPECT_EQ(reader.begins_run(), views == 0);
    EXPECT_EQ(view->ends.size(), views == 20 ? 1u : 0u);
    ++views;
    if (views < 21) continue;
    EXPECT_EQ(view->now, TimePoint(job_.wall));
    EXPECT_EQ(view->machine.cpus, 8);
    EXPECT_EQ(view->records_trained, last.records_trained);
    EXPECT_EQ(view->backlog_records, 77u);
    ASSERT_THAT(view->nodes, SizeIs(3));
    EXPECT_EQ(view->nodes[1].max.cpus, 3);
    EXPECT_EQ(view->nodes[1].state, NodeState::kRunning);
    ASSERT_THAT(view->nodes[1].samples, SizeIs(21));
    EXPECT_EQ(view->nodes[1].samples[3].worker.minibatches, 40u);
  }
  EXPECT_EQ(views, 21);
  EXPECT_EQ(reader.lines_skipped(), 0u);
}

TEST_F(HistoryTest, BetweenTwoSecondsOnlyWhatHappened) {
  HistoryWriter writer = Writer("r1");
  Seconds(&writer, 2);
  job_.now += std::chrono::milliseconds(300);
  writer.Append(job_.sensor.View(job_.kept, job_.now), job_.wall);
  job_.sensor.OnEnd({.node = "worker-1", .start = 1, .at = job_.now});
  writer.Append(job_.sensor.View(job_.kept, job_.now), job_.wall);
  // A reading that comes earlier than a second after that is not left out.
  job_.now -= std::chrono::milliseconds(300);
  Seconds(&writer, 2);
  HistoryReader reader = Reader();
  const JobView* view = nullptr;
  size_t views = 0;
  size_t samples = 0;
  while ((view = reader.Next()) != nullptr) {
    ++views;
    samples = view->nodes[0].samples.size();
  }
  EXPECT_EQ(views, 5u);
  EXPECT_EQ(samples, 4u);
}

TEST_F(HistoryTest, TheNextScalerGoesOnAndTheNextRunBeginsAnew) {
  HistoryWriter first = Writer("r1");
  Seconds(&first, 5);
  HistoryWriter second = Writer("r1");
  Seconds(&second, 5);
  HistoryWriter other = Writer("r2");
  Seconds(&other, 5);
  HistoryReader reader = Reader();
  std::vector<size_t> samples;
  std::vector<bool> begins;
  while (const JobView* view = reader.Next()) {
    samples.push_back(view->nodes[0].samples.size());
    begins.push_back(reader.begins_run());
  }
  ASSERT_THAT(samples, SizeIs(15));
  EXPECT_EQ(samples[9], 10u);
  EXPECT_FALSE(begins[5]);
  EXPECT_EQ(samples[10], 1u);
  EXPECT_TRUE(begins[10]);
}

TEST_F(HistoryTest, AWallClockThatWasSetBackStopsNoTime) {
  HistoryWriter first = Writer("r1");
  Seconds(&first, 5);
  job_.wall -= hours(2);
  HistoryWriter second = Writer("r1");
  Seconds(&second, 5);
  HistoryReader reader = Reader();
  TimePoint before;
  while (const JobView* view = reader.Next()) {
    EXPECT_GT(view->now, before);
    before = view->now;
    const std::vector<NodeSample>& samples = view->nodes[0].samples;
    for (size_t i = 1; i < samples.size(); ++i) EXPECT_GT(samples[i].at, samples[i - 1].at);
  }
}

TEST_F(HistoryTest, DamagedAndTornLinesAreSkippedAndCounted) {
  HistoryWriter writer = Writer("r1");
  Seconds(&writer, 10);
  const std::string path = HistoryPath(folder_, 1);
  std::string text = *ReadFile(path, 1 << 20);
  text[text.find("\"a\"", text.size() / 2)] = 'x';
  text.resize(text.size() - 20);
  Spoil(path, text);
  HistoryReader reader = Reader();
  size_t views = 0;
  while (reader.Next() != nullptr) ++views;
  EXPECT_EQ(views, 8u);
  EXPECT_EQ(reader.lines_skipped(), 2u);
  EXPECT_THAT(reader.first_skipped(), HasSubstr("history-00000001.jsonl:"));
}

TEST_F(HistoryTest, GarbageIsNoHistory) {
  EXPECT_EQ(HistoryReader::Open(folder_).status().code(), absl::StatusCode::kNotFound);
  ASSERT_TRUE(MakeDirectories(folder_).ok());
  Spoil(folder_ + "/history-x.jsonl", "{}");
  EXPECT_EQ(HistoryReader::Open(folder_).status().code(), absl::StatusCode::kNotFound);
  Spoil(HistoryPath(folder_, 3), std::string(1'000, '\0') + "\n\n[[[[\n\"");
  HistoryReader reader = Reader();
  EXPECT_EQ(reader.Next(), nullptr);
  EXPECT_EQ(reader.lines_skipped(), 3u);
}

TEST_F(HistoryTest, TheOldestGo) {
  HistoryWriter writer = Writer("r1", {.bytes_max = 40'000, .file_bytes_max = 8'000});
  Seconds(&writer, 500);
  const std::vector<HistoryFile> files = ListHistory(folder_);
  uint64_t bytes = 0;
  for (const HistoryFile& file : files) {
    EXPECT_LE(file.bytes, 8'000u);
    bytes += file.bytes;
  }
  EXPECT_LE(bytes, 40'000u);
  EXPECT_GE(bytes, 24'000u);
  EXPECT_GT(files.front().number, 1u);
  HistoryReader reader = Reader();
  const JobView* view = nullptr;
  TimePoint newest;
  while ((view = reader.Next()) != nullptr) newest = view->now;
  EXPECT_EQ(newest, TimePoint(job_.wall));
  EXPECT_EQ(reader.lines_skipped(), 0u);
}

TEST_F(HistoryTest, WhatCannotBeWrittenIsMissingAndThatIsAll) {
  Spoil(folder_, "a file where the folder should be");
  HistoryWriter writer = Writer("r1");
  Seconds(&writer, 5);
  EXPECT_EQ(writer.lines_lost(), 5u);
  RemoveFile(folder_);
  Seconds(&writer, 5);
  EXPECT_EQ(writer.lines_lost(), 5u);
  HistoryReader reader = Reader();
  size_t views = 0;
  while (reader.Next() != nullptr) ++views;
  EXPECT_EQ(views, 5u);
}

/// No file may become larger, as on a disk that is full.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) {
    ::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{.rlim_cur = bytes, .rlim_max = before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FullDisk() { ::setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_{};
};

TEST_F(HistoryTest, AFullDiskIsAGapOfSomeLines) {
  HistoryWriter writer = Writer("r1");
  {
    FullDisk full(3'000);
    Seconds(&writer, 20);
  }
  const uint64_t lost = writer.lines_lost();
  EXPECT_GT(lost, 5u);
  EXPECT_LT(lost, 20u);
  Seconds(&writer, 20);
  EXPECT_EQ(writer.lines_lost(), lost);
  HistoryReader reader = Reader();
  size_t views = 0;
  while (reader.Next() != nullptr) ++views;
  EXPECT_EQ(views, 40 - lost);
  EXPECT_EQ(reader.lines_skipped(), 0u);
}

TEST_F(HistoryTest, ADiskThatIsFullFromTheBeginningLeavesNothing) {
  HistoryWriter writer = Writer("r1");
  {
    FullDisk full(10);
    Seconds(&writer, 20);
  }
  EXPECT_EQ(writer.lines_lost(), 20u);
  EXPECT_EQ(ListHistory(folder_).size(), 0u);
  Seconds(&writer, 1);
  EXPECT_EQ(ListHistory(folder_).size(), 1u);
}

}  // namespace
}  // namespace muster::scaler
