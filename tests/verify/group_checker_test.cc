#include "verify/group_checker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::verify {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr Workload kInput{.records = 300, .epochs = 2};
constexpr uint64_t kRecordsPerStep = 30;
constexpr uint64_t kSteps = kInput.records * kInput.epochs / kRecordsPerStep;
constexpr uint64_t kMillisecond = 1'000'000;

/// A process that makes every step of the job by itself, and may do it wrong.
struct Member {
  explicit Member(ProcessName name) : process(std::move(name)) {}

  void Step(uint64_t number) {
    const auto epoch = static_cast<uint32_t>((number - 1) * kRecordsPerStep / kInput.records);
    const uint64_t first = (number - 1) * kRecordsPerStep % kInput.records;
    GroupGradients sums(kInput.records);
    for (uint64_t id = first; id < first + kRecordsPerStep; ++id) {
      if (id != left_out) sums.Add(id, epoch, state.curve());
    }
    for (uint64_t times = number == doubled ? 2 : 1; times > 0; --times) {
      ApplySums({sums.ids, sums.mixed, sums.curve}, kRecordsPerStep, &state);
    }
    state.steps()[0] = static_cast<int64_t>(number);
    if (number == flipped) state.curve()[0] += 1e-3F;
    applied.push_back({.at_ns = number * kMillisecond, .step = number, .digest = state.Digest()});
  }
  void Run(uint64_t last = kSteps) {
    for (uint64_t number = 1; number <= last; ++number) Step(number);
  }
  void AddTo(GroupRun* run) const {
    for (const AppliedStep& each : applied) run->steps.Add(process, each);
    run->finals.push_back({process, state});
  }

  ProcessName process;
  GroupState state{kInput.records};
  std::vector<AppliedStep> applied;
  std::optional<uint64_t> left_out;
  uint64_t doubled = 0;
  uint64_t flipped = 0;
};

/// The result of members of a run; those of the undisturbed run make no mistakes.
GroupVerdict VerdictOf(const std::vector<Member>& members) {
  Member right({"worker-0", 1});
  right.Run();
  GroupRun undisturbed;
  right.AddTo(&undisturbed);
  GroupRun run;
  for (const Member& member : members) member.AddTo(&run);
  return CheckGroup(kInput, undisturbed, run);
}

TEST(CheckGroupTest, RunWithoutMistakes) {
  std::vector<Member> members = {Member({"worker-0", 1}), Member({"worker-1", 4})};
  for (Member& member : members) member.Run();
  const GroupVerdict verdict = VerdictOf(members);
  EXPECT_TRUE(verdict.ok());
  EXPECT_EQ(verdict.steps, kSteps);
  EXPECT_EQ(verdict.compared, 2 * kSteps);
  EXPECT_EQ(verdict.members, 2u);
  EXPECT_THAT(verdict.wrong, IsEmpty());
}

TEST(CheckGroupTest, RecordInNoStepIsNamed) {
  Member member({"worker-0", 1});
  member.left_out = 17;
  member.Run();
  const GroupVerdict verdict = VerdictOf({member});
  EXPECT_FALSE(verdict.ok());
  EXPECT_EQ(verdict.in_no_step, kInput.epochs);
  EXPECT_EQ(verdict.in_two_steps, 0u);
  EXPECT_EQ(verdict.members_different, 1u);
  EXPECT_GT(verdict.different, 0u);
  EXPECT_THAT(verdict.wrong, Contains("record 17 of epoch 1 is in no step"));
}

TEST(CheckGroupTest, RecordsInTwoStepsAreCounted) {
  Member member({"worker-0", 1});
  member.doubled = 12;
  member.Run();
  const GroupVerdict verdict = VerdictOf({member});
  EXPECT_FALSE(verdict.ok());
  EXPECT_EQ(verdict.in_two_steps, kRecordsPerStep);
  EXPECT_EQ(verdict.in_no_step, 0u);
  EXPECT_THAT(verdict.wrong, Contains("record 30 of epoch 1 is in 2 steps"));
}

TEST(CheckGroupTest, WrongBitsAreNamedWithTheirStep) {
  std::vector<Member> members = {Member({"worker-0", 1}), Member({"worker-1", 3})};
  members[1].flipped = kSteps - 1;
  for (Member& member : members) member.Run();
  const GroupVerdict verdict = VerdictOf(members);
  EXPECT_FALSE(verdict.ok());
  EXPECT_EQ(verdict.different, 2u);
  EXPECT_EQ(verdict.members, 2u);
  EXPECT_EQ(verdict.members_different, 1u);
  EXPECT_EQ(verdict.in_no_step + verdict.in_two_steps, 0u);
  EXPECT_THAT(verdict.wrong, Contains(HasSubstr("worker-1 (start 3) has other weights "
                                                "after step 19 than the undisturbed")));
}

TEST(CheckGroupTest, MemberThatWasBehindIsComparedWhereItIs) {
  std::vector<Member> members = {Member({"worker-0", 1}), Member({"worker-1", 2})};
  members[0].Run();
  members[1].Run(kSteps - 1);
  EXPECT_TRUE(VerdictOf(members).ok());
  EXPECT_EQ(VerdictOf(members).members, 1u);
  members[1].applied.back().digest ^= 1;
  EXPECT_FALSE(VerdictOf(members).ok());
}

TEST(CheckGroupTest, JobThatIsTooShort) {
  Member member({"worker-0", 1});
  member.Run(kSteps - 1);
  EXPECT_THAT(VerdictOf({member}).wrong,
              Contains("the job made 19 steps, the undisturbed run made 20"));
}

TEST(CheckGroupTest, StateIsCountedThoughItsStepsAreWrong) {
  std::vector<Member> members = {Member({"worker-0", 1}), Member({"worker-1", 2}),
                                 Member({"worker-2", 1})};
  members[0].flipped = kSteps;
  members[1].doubled = kSteps;
  for (Member& member : members) member.Run();
  members[1].state.steps()[0] = kSteps + 1;
  const GroupVerdict verdict = VerdictOf(members);
  EXPECT_EQ(verdict.members, 3u);
  EXPECT_EQ(verdict.members_different, 2u);
  EXPECT_EQ(verdict.in_two_steps, kRecordsPerStep) << "of the member that differs most";
}

TEST(CheckGroupTest, NobodyAtTheLastStep) {
  Member member({"worker-0", 1});
  member.Run();
  GroupRun undisturbed;
  member.AddTo(&undisturbed);
  GroupRun run = undisturbed;
  run.finals.clear();
  const GroupVerdict verdict = CheckGroup(kInput, undisturbed, run);
  EXPECT_EQ(verdict.members, 0u);
  EXPECT_THAT(verdict.wrong,
              ElementsAre("no member had the weights of the last step when the job ended"));
}

TEST(CheckGroupTest, UndisturbedRunIsCheckedToo) {
  std::vector<Member> members = {Member({"worker-0", 1}), Member({"worker-1", 1})};
  members[1].flipped = kSteps;
  GroupRun undisturbed;
  for (Member& member : members) {
    member.Run();
    member.AddTo(&undisturbed);
  }
  GroupRun run;
  members[0].AddTo(&run);
  const GroupVerdict verdict = CheckGroup(kInput, undisturbed, run);
  EXPECT_FALSE(verdict.ok());
  EXPECT_THAT(verdict.wrong,
              ElementsAre(HasSubstr("worker-1 (start 1) has other weights after step 20"),
                          HasSubstr("worker-1 (start 1) ended with other weights")));
  EXPECT_FALSE(CheckGroup(kInput, {}, run).ok()) << "nothing to compare with";
}

TEST(CheckGroupTest, FewSamplesOfManyMistakes) {
  Member member({"worker-0", 1});
  member.flipped = 1;
  member.Run();
  const GroupVerdict verdict = VerdictOf({member});
  EXPECT_EQ(verdict.different, kSteps);
  EXPECT_THAT(verdict.wrong, SizeIs(GroupVerdict::kSamplesMax + 1));
}

TEST(StepLogTest, RecoveryIsUntilTheGroupGetsFurther) {
  StepLog steps;
  const auto apply = [&](uint64_t start, uint64_t ms, uint64_t step) {
    steps.Add({"worker-0", start}, {.at_ns = ms * kMillisecond, .step = step});
  };
  apply(1, 100, 5);
  apply(1, 200, 6);
  apply(2, 350, 6);  // what others had applied before
  apply(2, 500, 7);
  apply(3, 480, 7);
  EXPECT_EQ(steps.newest(), 7u);
  EXPECT_THAT(steps.Recoveries({{210 * kMillisecond, {"worker-0", 1}}}), ElementsAre(270));
  EXPECT_THAT(steps.Recoveries({{490 * kMillisecond, {"worker-0", 2}}}), IsEmpty());
}

}  // namespace
}  // namespace muster::verify
