#include "master/journal/journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/master/journal/sample_records.h"
#include "tests/support/memory_journal.h"
#include "tests/support/status_matchers.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::IsOk;
using ::testing::Not;
using testing::StatusIs;

JournalHeader Header() {
  return {"flights", {{"spec.seed", "7"}, {"spec.partitions", "256"}}, {{"train", "abcd"}}};
}

TEST(CheckHeader, ListsEveryDifferenceWithBothValues) {
  EXPECT_THAT(CheckHeader(Header(), Header(), "/s"), IsOk());
  JournalHeader other = Header();
  other.job = "other";
  other.fixed_fields = {{"spec.seed", "8"}, {"spec.new", "x"}};
  EXPECT_THAT(CheckHeader(Header(), other, "/s/journal"),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("/s/journal"), HasSubstr("metadata.name: 'flights'"),
                             HasSubstr("spec.seed: '7' in the state directory, '8'"),
                             HasSubstr("spec.new: '(absent)'"), HasSubstr("spec.partitions: '256'"),
                             HasSubstr("another spec.stateDirectory"))));
}

TEST(CheckHeader, NamesTheDatasetWhoseFilesChanged) {
  JournalHeader other = Header();
  other.sources = {{"train", "ef01"}};
  EXPECT_THAT(CheckHeader(Header(), other, "/s"),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("train: 'abcd' when the job began, 'ef01' now"),
                             Not(HasSubstr("spec.seed")))));
}

TEST(MemoryJournal, AppliesAndFailsOnDemand) {
  testing::MemoryJournal journal;
  ASSERT_THAT(journal.Write(testing::SampleRecords()), IsOk());
  EXPECT_EQ(journal.state().done.size(), 3u);
  journal.FailWith(absl::ResourceExhaustedError("full"));
  const std::vector<Mutation> erase{EraseDone{DoneSeq(1), DoneSeq(99)}};
  EXPECT_THAT(journal.Write(erase), StatusIs(absl::StatusCode::kResourceExhausted, "full"));
  EXPECT_EQ(journal.state().done.size(), 3u);
}

}  // namespace
}  // namespace muster
