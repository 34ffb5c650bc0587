#include "cli/run/source_looks.h"

#include <gmock/gmock.h>

#include "tests/support/status_matchers.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

SourceFindings Judge(const StreamLook& look) {
  return JudgeLooks({{"clicks", look}});
}

TEST(JudgeLooksTest, WhatWouldWaitWithoutEndIsAnError) {
  StreamLook look;
  EXPECT_THAT(Judge(look).errors, IsEmpty());
  EXPECT_THAT(Judge(look).notes, IsEmpty());
  look.error = "there is no topic t";
  look.gone = true;
  EXPECT_THAT(Judge(look).errors,
              ElementsAre(AllOf(HasSubstr("dataset 'clicks': there is no topic t"),
                                HasSubstr("would wait for it"))));
  look.gone = false;
  look.beyond = true;
  EXPECT_THAT(Judge(look).errors, ElementsAre(HasSubstr("would wait for it")));
  look.beyond = false;
  look.fatal = true;
  EXPECT_THAT(Judge(look).errors, ElementsAre(HasSubstr("would fail")));
}

TEST(JudgeLooksTest, BrokersThatDoNotAnswerAreNoError) {
  StreamLook look;
  look.error = "no broker answers";
  EXPECT_THAT(Judge(look).errors, IsEmpty());
  EXPECT_THAT(Judge(look).notes,
              ElementsAre(AllOf(HasSubstr("could not be asked"), HasSubstr("no broker answers"))));
}

TEST(JudgeLooksTest, RecordsThatAreNotThereYetAreNoted) {
  StreamLook look;
  look.partitions = {{.partition = TopicPartition(2), .stable_end = 5, .end = 9}};
  EXPECT_THAT(Judge(look).notes,
              ElementsAre(HasSubstr("ends at offset 9 of partition 2, whose log ends at 5 now")));
  look.partitions[0].end = 5;
  EXPECT_THAT(Judge(look).notes, IsEmpty());
}

TEST(EndsAheadTest, AnEndTimeThatHasNotComeIsNamed) {
  using std::chrono::milliseconds;
  constexpr milliseconds kEnd{1'800'000'000'000};
  TopicSpec topic;
  JobSpec job;
  job.datasets = {{.name = "lines", .source = LinesSpec{}}, {.name = "clicks", .source = topic}};
  EXPECT_THAT(EndsAhead(job, WallTime{0}), IsEmpty()) << "it has no end";
  topic.end = {.kind = StreamBound::Kind::kTime, .time = kEnd, .offsets = {}};
  job.datasets[1].source = topic;
  EXPECT_THAT(EndsAhead(job, kEnd - milliseconds(1)),
              ElementsAre("dataset 'clicks': the topic's end is a time in the future "
                          "(2027-01-15T08:00:00.000Z): the job waits until then"));
  EXPECT_THAT(EndsAhead(job, kEnd), IsEmpty());
}

TEST(LookAtSourcesTest, BrokersThatAreNotThereGiveALookInBoundedTime) {
  JobSpec job;
  job.name = "job";
  job.datasets = {
      {.name = "lines", .source = LinesSpec{}},
      {.name = "clicks", .source = TopicSpec{.brokers = {"127.0.0.1:1"}, .topic = "t"}}};
  MUSTER_ASSERT_OK_AND_ASSIGN(const std::vector<SourceLook> looks, LookAtSources(job));
  ASSERT_EQ(looks.size(), 1u);
  EXPECT_EQ(looks[0].dataset, "clicks");
  EXPECT_THAT(JudgeLooks(looks).notes, ElementsAre(HasSubstr("could not be asked")));
}

}  // namespace
}  // namespace muster
