#include "scaler/decision/log/event_log.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <filesystem>

#include "base/file.h"
#include "scaler/decision/log/event_file.h"
#include "tests/support/fake_clock.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster::scaler {
namespace {

using ::muster::testing::FakeClock;
using ::muster::testing::IsOk;
using ::muster::testing::StatusIs;
using ::muster::testing::TempDir;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class EventLogTest : public ::testing::Test {
 protected:
  EventLogTest() { Open(); }
  void Open(const EventLog::Options& options = {}) {
    log_.reset();
    auto opened = EventLog::Open(folder_.path(), options, &clock_);
    ASSERT_THAT(opened, IsOk());
    log_ = *std::move(opened);
  }
  rest::Event Add(const std::string& because, uint64_t cause_id = 0) {
    return log_->Append({.because = because, .cause_id = cause_id});
  }
  static std::vector<std::string> Texts(const rest::EventList& list) {
    std::vector<std::string> texts;
    for (const rest::Event& event : list.events) {
      texts.push_back(fmt::format("{} {}", event.id, event.because));
    }
    return texts;
  }

  TempDir folder_;
  FakeClock clock_;
  std::unique_ptr<EventLog> log_;
};

TEST_F(EventLogTest, IdsCountFromOneOverRestarts) {
  EXPECT_EQ(log_->last_id(), 0u);
  EXPECT_EQ(Add("a").id, 1u);
  EXPECT_EQ(Add("b").id, 2u);
  Open();
  EXPECT_EQ(log_->last_id(), 2u);
  EXPECT_EQ(Add("c").id, 3u);
  EXPECT_THAT(Texts(log_->Events(0, 10)), ElementsAre("1 a", "2 b", "3 c"));
}

TEST_F(EventLogTest, AnEventIsOnDiskAndDatedWhenAppendReturns) {
  const rest::Event event = Add("a");
  EXPECT_EQ(event.wall_us, static_cast<uint64_t>(clock_.Wall().count()));
  MUSTER_ASSERT_OK_AND_ASSIGN(const std::string bytes, ReadFile(EventFile(folder_.path()), 9999));
  EXPECT_EQ(bytes, EventLine(event));
}

TEST_F(EventLogTest, Pages) {
  for (const char* text : {"a", "b", "c", "d"}) Add(text);
  const rest::EventList page = log_->Events(1, 2);
  EXPECT_THAT(Texts(page), ElementsAre("2 b", "3 c"));
  EXPECT_EQ(page.next_after, 3u);
  const rest::EventList end = log_->Events(4, 2);
  EXPECT_THAT(end.events, IsEmpty());
  EXPECT_EQ(end.next_after, 4u);
  EXPECT_EQ(log_->Events(100, 2).next_after, 100u);
}

TEST_F(EventLogTest, ExplainsWithCauseAndEffects) {
  Add("the kernel killed it");
  Add("something else");
  Add("so it is restarted", 1);
  Add("it trains again", 3);
  MUSTER_ASSERT_OK_AND_ASSIGN(const rest::Explanation decision, log_->Explain(3));
  EXPECT_EQ(decision.event.because, "so it is restarted");
  ASSERT_TRUE(decision.cause.has_value());
  EXPECT_EQ(decision.cause->id, 1u);
  ASSERT_THAT(decision.effects, SizeIs(1));
  EXPECT_EQ(decision.effects[0].id, 4u);
  MUSTER_ASSERT_OK_AND_ASSIGN(const rest::Explanation exit, log_->Explain(1));
  EXPECT_FALSE(exit.cause.has_value());
  EXPECT_THAT(log_->Explain(5),
              StatusIs(absl::StatusCode::kNotFound, "there is no event 5; there are 1 to 4"));
  EXPECT_THAT(log_->Explain(0), StatusIs(absl::StatusCode::kNotFound, HasSubstr("no event 0")));
}

TEST_F(EventLogTest, AFileThatIsLargeBecomesTheOldOneAndIdsGoOn) {
  Open({.file_bytes_max = 1000});
  for (int i = 1; i <= 100; ++i) Add(fmt::format("event {}", i));
  EXPECT_LE(std::filesystem::file_size(EventFile(folder_.path())), 1000u);
  EXPECT_LE(std::filesystem::file_size(OldEventFile(folder_.path())), 1000u);
  EXPECT_EQ(log_->Events(0, 1000).events.size(), 100u);
  Open({.file_bytes_max = 1000});
  EXPECT_THAT(log_->damage(), IsEmpty());
  const rest::EventList kept = log_->Events(0, 1000);
  ASSERT_GT(kept.events.size(), 2u);
  EXPECT_EQ(kept.events.back().because, "event 100");
  EXPECT_EQ(kept.events.back().id - kept.events.front().id, kept.events.size() - 1);
  EXPECT_EQ(Add("on").id, 101u);
  EXPECT_THAT(log_->Explain(1), StatusIs(absl::StatusCode::kNotFound, HasSubstr("to 101")));
}

TEST_F(EventLogTest, MemoryKeepsTheNewest) {
  Open({.events_max = 3});
  for (const char* text : {"a", "b", "c", "d", "e"}) Add(text);
  EXPECT_THAT(Texts(log_->Events(0, 10)), ElementsAre("3 c", "4 d", "5 e"));
}

TEST_F(EventLogTest, ATornTailIsWrittenOverAndADamagedLineIsTold) {
  Add("a");
  Add("b");
  MUSTER_ASSERT_OK_AND_ASSIGN(std::string bytes, ReadFile(EventFile(folder_.path()), 9999));
  bytes[3] = '\0';
  bytes += "{\"id\":3,\"because\":\"half of a long line that a shorter one would not cover" +
           std::string(500, '.');
  ASSERT_THAT(WriteFileAtomically(EventFile(folder_.path()), bytes), IsOk());
  Open();
  EXPECT_THAT(log_->damage(), ElementsAre(HasSubstr("line 1 of")));
  EXPECT_EQ(Add("c").id, 3u);
  Open();
  EXPECT_THAT(Texts(log_->Events(0, 10)),
              ElementsAre(HasSubstr("1 this event cannot be read"), "2 b", "3 c"));
}

TEST_F(EventLogTest, WhatADiskDoesNotTakeIsKeptAndToldOnce) {
  Add("before");
  // No folder, no file: as little can be written as to a full disk.
  const std::string away = folder_.path() + ".away";
  ASSERT_THAT(RenamePath(folder_.path(), away), IsOk());
  EXPECT_EQ(Add("first").id, 2u);
  EXPECT_EQ(Add("second").id, 4u);
  log_->Flush();
  EXPECT_THAT(
      Texts(log_->Events(0, 10)),
      ElementsAre("1 before", "2 first", HasSubstr("3 events cannot be written"), "4 second"));
  ASSERT_THAT(RenamePath(away, folder_.path()), IsOk());
  log_->Flush();
  log_->Flush();
  Add("after");
  Open();
  EXPECT_THAT(Texts(log_->Events(0, 10)),
              ElementsAre("1 before", "2 first", HasSubstr("3 events cannot be written"),
                          "4 second", "5 events are written again; 3 had to wait", "6 after"));
}

TEST_F(EventLogTest, IsReadWithoutAScaler) {
  EXPECT_THAT(ReadEvents(folder_.path(), 0, 10),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr(folder_.path())));
  Add("a");
  Add("b", 1);
  log_.reset();
  MUSTER_ASSERT_OK_AND_ASSIGN(const rest::EventList list, ReadEvents(folder_.path(), 1, 10));
  EXPECT_THAT(Texts(list), ElementsAre("2 b"));
  MUSTER_ASSERT_OK_AND_ASSIGN(const rest::Explanation one, ReadExplanation(folder_.path(), 1));
  EXPECT_THAT(one.effects, SizeIs(1));
  EXPECT_THAT(ReadExplanation(folder_.path(), 3),
              StatusIs(absl::StatusCode::kNotFound, "there is no event 3; there are 1 to 2"));
}

}  // namespace
}  // namespace muster::scaler
