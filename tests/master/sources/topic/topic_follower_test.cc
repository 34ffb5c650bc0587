#include "master/sources/topic/topic_follower.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "tests/support/fake_clock.h"
#include "tests/support/status_matchers.h"

namespace muster {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

/// Brokers by hand.
class FakeTopic final : public kafka::Topic {
 public:
  struct Brokers {
    absl::Status trouble, commit_trouble;
    std::vector<Log> logs{{0, 10, 10}, {5, 20, 20}};
    std::vector<std::optional<uint64_t>> at_time{3, std::nullopt};
    std::optional<milliseconds> retention;
    std::vector<std::map<uint32_t, uint64_t>> commits;
    int retention_asked = 0;
    absl::Status time_trouble;
    int time_asked = 0;
    std::map<std::string, absl::Status> others;
    int others_asked = 0;
  };
  explicit FakeTopic(Brokers* brokers) : brokers_(brokers) {}

  absl::StatusOr<std::string> Cluster() override { return std::string("cluster"); }
  absl::StatusOr<uint32_t> Partitions() override {
    if (!brokers_->trouble.ok()) return brokers_->trouble;
    return static_cast<uint32_t>(brokers_->logs.size());
  }
  absl::Status CheckOther(const std::string& topic) override {
    ++brokers_->others_asked;
    return brokers_->others.at(topic);
  }
  absl::StatusOr<std::vector<Log>> Logs(uint32_t) override { return brokers_->logs; }
  absl::StatusOr<std::vector<std::optional<uint64_t>>> OffsetsAt(uint32_t, milliseconds) override {
    ++brokers_->time_asked;
    if (!brokers_->time_trouble.ok()) return brokers_->time_trouble;
    return brokers_->at_time;
  }
  absl::StatusOr<std::optional<milliseconds>> Retention() override {
    ++brokers_->retention_asked;
    return brokers_->retention;
  }
  absl::Status Commit(const std::map<uint32_t, uint64_t>& offsets) override {
    if (brokers_->commit_trouble.ok()) brokers_->commits.push_back(offsets);
    return brokers_->commit_trouble;
  }

 private:
  Brokers* const brokers_;
};

class TopicFollowerTest : public ::testing::Test {
 protected:
  void Open() {
    TopicFollower::Options options{
        .dataset = DatasetId(2), .name = "clicks", .spec = spec_, .group = "muster.test"};
    follower_ = std::make_unique<TopicFollower>(
        std::move(options), std::make_unique<FakeTopic>(&brokers_),
        FollowOptions{
            .progress = progress_,
            .tell = [this](const StreamLook& look) -> absl::StatusOr<FollowOptions::Progress> {
              looks_.push_back(look);
              return progress_;
            },
            .clock = &clock_});
  }
  const StreamLook& Look() {
    follower_->Step();
    return looks_.back();
  }
  static StreamTable::Progress ProgressOf(uint32_t partition, uint64_t committed) {
    StreamTable::Progress progress;
    progress.position.partition = TopicPartition(partition);
    progress.committed = committed;
    return progress;
  }

  testing::FakeClock clock_;
  FakeTopic::Brokers brokers_;
  TopicSpec spec_;
  FollowOptions::Progress progress_;
  std::vector<StreamLook> looks_;
  std::unique_ptr<TopicFollower> follower_;
};

TEST_F(TopicFollowerTest, TellsWhatItSees) {
  brokers_.retention = seconds(60);
  Open();
  const StreamLook& look = Look();
  EXPECT_EQ(look.dataset, DatasetId(2));
  EXPECT_EQ(look.cluster, "cluster");
  EXPECT_EQ(look.error, "");
  EXPECT_EQ(look.retention, seconds(60));
  ASSERT_EQ(look.partitions.size(), 2u);
  EXPECT_EQ(look.partitions[1].log_begin, 5u);
  EXPECT_EQ(look.partitions[1].stable_end, 20u);
  EXPECT_EQ(Look().retention, seconds(60));
  EXPECT_EQ(brokers_.retention_asked, 1) << "not at every look";
}

TEST_F(TopicFollowerTest, BoundsAreResolvedAtTheFirstLookOnly) {
  spec_.start = {.kind = StreamBound::Kind::kTime, .time = seconds(5), .offsets = {}};
  Open();
  EXPECT_EQ(Look().partitions[0].begin, 3u);
  progress_ = {ProgressOf(0, 3), ProgressOf(1, 20)};
  Look();
  EXPECT_EQ(Look().partitions[0].begin, std::nullopt);
}

TEST_F(TopicFollowerTest, AnEndThatIsATimeIsSettledByAnAnswerAlone) {
  spec_.end = {.kind = StreamBound::Kind::kTime, .time = seconds(5), .offsets = {}};
  clock_.Advance(seconds(1'000));  // long ago
  brokers_.time_trouble = absl::UnavailableError("no leader");
  Open();
  EXPECT_THAT(Look().error, HasSubstr("no leader"));
  brokers_.time_trouble = absl::OkStatus();
  EXPECT_EQ(Look().partitions[0].end, 3u) << "asked at once, not after a while";
  EXPECT_EQ(looks_.back().partitions[1].end, 20u) << "no record is so young";
}

TEST_F(TopicFollowerTest, AnEndThatIsATimeIsNotSettledBetweenTwoQuestions) {
  // Well over in a second.
  const auto now = std::chrono::duration_cast<milliseconds>(clock_.Wall());
  spec_.end = {.kind = StreamBound::Kind::kTime, .time = now - seconds(74), .offsets = {}};
  brokers_.at_time = {std::nullopt, std::nullopt};
  Open();
  EXPECT_EQ(Look().partitions[0].end, std::nullopt);
  progress_ = {ProgressOf(0, 0), ProgressOf(1, 5)};
  clock_.Advance(seconds(2));
  EXPECT_EQ(Look().partitions[0].end, std::nullopt);
  EXPECT_EQ(brokers_.time_asked, 1);
  // A partition that was added has no end, though all that are known have theirs.
  for (StreamTable::Progress& partition : progress_) partition.position.end = 10;
  brokers_.logs.push_back({0, 4, 4});
  brokers_.at_time = {1, 2, 3};
  clock_.Advance(seconds(100));
  EXPECT_EQ(Look().partitions[2].end, 3u);
}

TEST_F(TopicFollowerTest, TroubleIsToldForWhatItIs) {
  Open();
  brokers_.trouble = absl::UnavailableError("no broker answers");
  EXPECT_THAT(Look().error, HasSubstr("no broker answers"));
  EXPECT_FALSE(looks_.back().gone);
  brokers_.trouble = absl::NotFoundError("topic 't': unknown");
  EXPECT_TRUE(Look().gone);
  brokers_.trouble = absl::OkStatus();
  EXPECT_EQ(Look().error, "");
}

TEST_F(TopicFollowerTest, TheTopicOfRejectedRecordsIsLookedForAndNotTooOften) {
  spec_.dead_letter_topic = "dead";
  absl::Status& dead = brokers_.others["dead"] = absl::NotFoundError("topic 'dead': unknown");
  Open();
  EXPECT_THAT(Look().dead_letter_trouble, HasSubstr("topic 'dead'"));
  dead = absl::UnavailableError("no broker answers");
  EXPECT_THAT(Look().dead_letter_trouble, HasSubstr("topic 'dead'"));
  EXPECT_EQ(brokers_.others_asked, 1);
  clock_.Advance(seconds(5));
  EXPECT_THAT(Look().dead_letter_trouble, HasSubstr("topic 'dead'")) << "nothing better is known";
  dead = absl::OkStatus();
  clock_.Advance(seconds(5));
  EXPECT_EQ(Look().dead_letter_trouble, "");
  EXPECT_EQ(looks_.back().error, "") << "it holds up no look";
}

TEST_F(TopicFollowerTest, WrongOffsetsInTheJobFileAreFatal) {
  spec_.start = {.kind = StreamBound::Kind::kOffsets, .time = {}, .offsets = {{0, 1}}};
  Open();
  EXPECT_TRUE(Look().fatal);
  EXPECT_THAT(looks_.back().error, HasSubstr("partition 1"));
}

TEST_F(TopicFollowerTest, AStartBeyondTheEndOfALogMayPass) {
  spec_.start = {.kind = StreamBound::Kind::kOffsets, .time = {}, .offsets = {{0, 11}, {1, 20}}};
  Open();
  EXPECT_TRUE(Look().beyond);
  EXPECT_FALSE(looks_.back().fatal);
  EXPECT_THAT(looks_.back().error, HasSubstr("offset 11 of partition 0"));
  brokers_.logs[0] = {0, 11, 11};
  EXPECT_EQ(Look().error, "");
  EXPECT_FALSE(looks_.back().beyond);
}

TEST_F(TopicFollowerTest, TheGroupIsToldWhatHasChangedAndNotTooOften) {
  Open();
  progress_ = {ProgressOf(0, 4), ProgressOf(1, 5)};
  Look();
  EXPECT_THAT(brokers_.commits, ElementsAre(ElementsAre(Pair(0, 4), Pair(1, 5))));
  progress_[1].committed = 9;
  Look();
  EXPECT_EQ(brokers_.commits.size(), 1u);
  clock_.Advance(seconds(1));
  Look();
  EXPECT_THAT(brokers_.commits.back(), ElementsAre(Pair(1, 9)));
  clock_.Advance(seconds(1));
  Look();
  EXPECT_EQ(brokers_.commits.size(), 2u) << "nothing has changed";
}

TEST_F(TopicFollowerTest, WhatTheGroupWasNotToldItIsToldLater) {
  Open();
  progress_ = {ProgressOf(0, 4)};
  brokers_.commit_trouble = absl::PermissionDeniedError("no");
  Look();
  EXPECT_THAT(brokers_.commits, IsEmpty());
  brokers_.commit_trouble = absl::OkStatus();
  clock_.Advance(seconds(10));
  Look();
  EXPECT_THAT(brokers_.commits, ElementsAre(ElementsAre(Pair(0, 4))));
}

TEST_F(TopicFollowerTest, TheLastOffsetsAreToldWhenItStops) {
  Open();
  progress_ = {ProgressOf(0, 4)};
  Look();
  progress_[0].committed = 6;
  Look();
  ASSERT_EQ(brokers_.commits.size(), 1u);
  follower_->Start();
  follower_->Stop();
  EXPECT_THAT(brokers_.commits.back(), ElementsAre(Pair(0, 6)));
}

}  // namespace
}  // namespace muster
