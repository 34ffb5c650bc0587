#include "tests/worker_sdk/member_core/member_core_fixture.h"

namespace muster::sdk {
namespace {

TEST_F(MemberCoreTest, IntroducesItselfUntilTheMasterKnowsIt) {
  EXPECT_TRUE(core_.request_changed());
  EXPECT_TRUE(core_.Request().introduction.has_value());
  EXPECT_FALSE(core_.request_changed());
  core_.OnReply(Reply(++news_, GroupStanding::kUnknown));
  EXPECT_TRUE(core_.Request().introduction.has_value());
  core_.OnReply(Member(1, 0, 0, kTwo));
  GroupExchangeRequest request = core_.Request();
  EXPECT_FALSE(request.introduction.has_value());
  EXPECT_EQ(request.sequence, 3u);
  EXPECT_EQ(request.news, news_);
  // Another master that does not know it.
  GroupExchangeReply other = Reply(1, GroupStanding::kUnknown);
  other.master_incarnation = MasterIncarnation(2);
  core_.OnReply(other);
  EXPECT_TRUE(core_.request_changed());
  EXPECT_TRUE(core_.Request().introduction.has_value());
}

TEST_F(MemberCoreTest, TakesAStepFromTheShareToTheState) {
  core_.OnReply(Member(1, 0, 0, kTwo));
  EXPECT_EQ(core_.state(), Label(1, 0));
  TrainerTask task = core_.NextTask();
  ASSERT_EQ(task.kind, Kind::kCompute);
  EXPECT_EQ(task.spans, kTwo);
  EXPECT_EQ(core_.phase(), MemberPhase::kComputing);
  EXPECT_EQ(core_.WantedSums()->share, kTwo);
  Compute({0, 1});
  EXPECT_EQ(core_.phase(), MemberPhase::kReducing);
  EXPECT_FALSE(core_.Request().sum.has_value());
  core_.OnSum(AttemptNumber(1), StepNumber(1), 77);
  EXPECT_TRUE(core_.request_changed());
  std::optional<HeldSum> vote = core_.Request().sum;
  EXPECT_EQ(vote, (HeldSum{AttemptNumber(1), StepNumber(1), 77, {.records = 2}}));
  EXPECT_EQ(core_.NextTask().kind, Kind::kWait);
  core_.OnReply(Member(1, 1, 1, kTwo));
  task = core_.NextTask();
  ASSERT_EQ(task.kind, Kind::kApply);
  EXPECT_EQ(task.step, StepNumber(1));
  EXPECT_EQ(core_.Request().state, Label(1, 0));
  core_.OnApplied();
  EXPECT_EQ(core_.Request().state, Label(1, 1));
  EXPECT_FALSE(core_.Request().sum.has_value());
  EXPECT_EQ(core_.NextTask().step, StepNumber(2));
}

/// The last bucket is often summed before the loop has left the minibatch.
TEST_F(MemberCoreTest, ASumIsNoVoteBeforeTheMetricsAreKnown) {
  core_.OnReply(Member(1, 0, 0, {{MinibatchIndex(0), 1}}));
  StepRunNumber run = core_.NextTask().run;
  ASSERT_TRUE(core_.StartMinibatch(run, MinibatchIndex(0)));
  core_.OnSum(AttemptNumber(1), StepNumber(1), 77);
  EXPECT_FALSE(core_.Request().sum.has_value());
  core_.OnMinibatch(run, MinibatchIndex(0), kTook);
  core_.OnComputed(run, {.records = 4});
  EXPECT_EQ(core_.Request().sum->metrics.records, 4u);
}

TEST_F(MemberCoreTest, OldAnswersDoNothing) {
  GroupExchangeReply old = Member(1, 0, 0, kTwo);
  core_.OnReply(Member(2, 0, 0, kTwo));
  core_.OnReply(old);
  EXPECT_EQ(core_.attempt(), AttemptNumber(2));
  old.news = 1'000;
  old.master_incarnation = MasterIncarnation(0);
  core_.OnReply(old);
  EXPECT_EQ(core_.attempt(), AttemptNumber(2));
}

TEST_F(MemberCoreTest, ANewAttemptFirstCommitsTheSumThatItNames) {
  VoteOnStepOne();
  core_.OnReply(Member(2, 1, 1, kTwo));
  EXPECT_EQ(core_.NextTask().kind, Kind::kApply);
}

TEST_F(MemberCoreTest, TheSumOfAnotherAttemptIsNotTheStep) {
  VoteOnStepOne();
  core_.OnReply(Member(3, 1, 2, kTwo));
  EXPECT_NE(core_.NextTask().kind, Kind::kApply);
  EXPECT_FALSE(core_.Request().sum.has_value());
  // It lacks the step, and gets the sum from the others.
  std::optional<GroupTransfer> transfer = TakeTransfer();
  ASSERT_TRUE(transfer.has_value());
  EXPECT_EQ(transfer->kind, GroupTransfer::Kind::kFetchSum);
  EXPECT_EQ(transfer->step, StepNumber(1));
  ASSERT_EQ(transfer->holders.size(), 1u);
  EXPECT_EQ(transfer->holders[0].worker, "b");
  core_.OnSumFetched(StepNumber(1));
  ASSERT_EQ(core_.NextTask().kind, Kind::kReplay);
  core_.OnApplied();
  EXPECT_EQ(core_.state(), Label(1, 1));
}

TEST_F(MemberCoreTest, ANewAttemptKeepsGradientsAndAsksForTheRest) {
  VoteOnStepOne();
  StepRunNumber run = core_.run();
  core_.OnReply(Member(2, 0, 0, {{MinibatchIndex(0), 3}}));
  EXPECT_FALSE(core_.Request().sum.has_value());
  TrainerTask task = core_.NextTask();
  ASSERT_EQ(task.kind, Kind::kCompute);
  EXPECT_EQ(task.run, run);
  EXPECT_EQ(task.spans, (std::vector<MinibatchSpan>{{MinibatchIndex(2), 1}}));
  Compute({2});
  core_.OnSum(AttemptNumber(1), StepNumber(1), 77);  // late
  EXPECT_FALSE(core_.Request().sum.has_value());
  core_.OnSum(AttemptNumber(2), StepNumber(1), 78);
  EXPECT_EQ(core_.Request().sum->attempt, AttemptNumber(2));
}

TEST_F(MemberCoreTest, AShareThatIsComputedAlreadyIsOnlySummedAgain) {
  VoteOnStepOne();
  core_.OnReply(Member(2, 0, 0, kTwo));
  EXPECT_EQ(core_.NextTask().kind, Kind::kWait);
  EXPECT_EQ(core_.WantedSums()->attempt, AttemptNumber(2));
  core_.OnSum(AttemptNumber(2), StepNumber(1), 77);
  EXPECT_EQ(core_.Request().sum->metrics.records, 2u);
}

TEST_F(MemberCoreTest, AnEvictedMembersGradientsGo) {
  core_.OnReply(Member(1, 0, 0, kTwo));
  StepRunNumber run = core_.NextTask().run;
  ASSERT_TRUE(core_.StartMinibatch(run, MinibatchIndex(0)));
  core_.OnMinibatch(run, MinibatchIndex(0), kTook);
  core_.OnReply(Learner(0));
  EXPECT_FALSE(core_.StartMinibatch(run, MinibatchIndex(1)));
  core_.OnReply(Member(3, 0, 0, kTwo));
  EXPECT_EQ(core_.NextTask().spans, kTwo);
  EXPECT_NE(core_.run(), run);
}

TEST_F(MemberCoreTest, ALearnerSaysThatItsTrainerIsStillInTheLoop) {
  core_.OnReply(Member(1, 0, 0, kTwo));
  ASSERT_EQ(core_.NextTask().kind, Kind::kCompute);
  core_.OnReply(Learner(3));
  EXPECT_EQ(core_.phase(), MemberPhase::kComputing);
  core_.NextTask();
  EXPECT_EQ(core_.phase(), MemberPhase::kIdle) << "it has left the loop";
}

TEST_F(MemberCoreTest, AFailedStepIsToldAndWaitsForANewAttempt) {
  core_.OnReply(Member(1, 0, 0, kTwo));
  StepRunNumber run = core_.NextTask().run;
  core_.OnTrainerFailed(run, "no memory", true);
  FailedStep failed{AttemptNumber(1), StepNumber(1), "no memory", true};
  EXPECT_EQ(core_.Request().failed, failed);
  EXPECT_EQ(core_.NextTask().kind, Kind::kWait);
  EXPECT_FALSE(core_.StartMinibatch(core_.run(), MinibatchIndex(0)));
  EXPECT_FALSE(core_.WantedSums().has_value());
  core_.OnReply(Member(2, 0, 0, kTwo));
  EXPECT_FALSE(core_.Request().failed.has_value());
  EXPECT_EQ(core_.NextTask().spans, kTwo);
}

TEST_F(MemberCoreTest, AVoteCannotBeTakenBack) {
  VoteOnStepOne();
  core_.OnTrainerFailed(core_.run(), "late", false);
  EXPECT_FALSE(core_.Request().failed.has_value());
  EXPECT_TRUE(core_.Request().sum.has_value());
}

TEST_F(MemberCoreTest, ABrokenConnectionIsToldOnceAndForgottenWithTheAttempt) {
  core_.OnReply(Member(1, 0, 0, kTwo));
  core_.OnSumFailed(AttemptNumber(1), {"b", 2, "reset"});
  core_.OnSumFailed(AttemptNumber(1), {"b", 2, "reset again"});
  core_.OnSumFailed(AttemptNumber(0), {"c", 3, "old"});
  ASSERT_EQ(core_.Request().suspected.size(), 1u);
  EXPECT_FALSE(core_.WantedSums().has_value());
  core_.OnReply(Member(2, 0, 0, kTwo));
  EXPECT_TRUE(core_.Request().suspected.empty());
  EXPECT_TRUE(core_.WantedSums().has_value());
}

TEST_F(MemberCoreTest, AnEvaluationIsAVoteWithoutASum) {
  GroupExchangeReply reply = Member(1, 0, 0, kTwo);
  reply.work->work.mode = DatasetMode::kEvaluate;
  core_.OnReply(reply);
  ASSERT_EQ(core_.NextTask().kind, Kind::kCompute);
  EXPECT_FALSE(core_.WantedSums().has_value());
  Compute({0, 1});
  EXPECT_EQ(core_.Request().sum, (HeldSum{AttemptNumber(1), StepNumber(1), 0, {.records = 2}}));
  core_.OnReply(Member(1, 1, 1, kTwo));
  TrainerTask task = core_.NextTask();
  EXPECT_EQ(task.kind, Kind::kApply);
  EXPECT_TRUE(task.evaluation);
}

TEST_F(MemberCoreTest, ARollbackKeepsTheStateOnlyAtItsBase) {
  VoteOnStepOne();
  GroupExchangeReply rolled = Member(5, 0, 0, kTwo);
  rolled.lineage = LineageNumber(2);
  core_.OnReply(rolled);
  EXPECT_EQ(core_.state(), Label(2, 0));
  EXPECT_FALSE(core_.Request().sum.has_value());
  rolled = Learner(1);
  rolled.lineage = LineageNumber(3);
  rolled.base = StepNumber(1);
  rolled.initial_is_base = false;
  core_.OnReply(rolled);
  EXPECT_FALSE(core_.state().has_value());
}

/// The step may have been undone, and done again with another sum, in the lineage between.
TEST_F(MemberCoreTest, AStateOfTheLineageBeforeTheLastIsOfNoUse) {
  VoteOnStepOne();
  core_.OnReply(Member(1, 1, 1, kTwo));
  ASSERT_EQ(core_.NextTask().kind, Kind::kApply);
  core_.OnApplied();
  GroupExchangeReply rolled = Learner(1);
  rolled.lineage = LineageNumber(3);
  rolled.base = StepNumber(1);
  rolled.initial_is_base = false;
  core_.OnReply(rolled);
  EXPECT_FALSE(core_.state().has_value());
}

TEST_F(MemberCoreTest, ARollbackBeforeAnApplyUndoesTheStep) {
  VoteOnStepOne();
  core_.OnReply(Member(1, 1, 1, kTwo));
  GroupExchangeReply rolled = Member(5, 0, 0, kTwo);
  rolled.lineage = LineageNumber(2);
  core_.OnReply(rolled);
  EXPECT_EQ(core_.state(), Label(2, 0));
  EXPECT_EQ(core_.NextTask().kind, Kind::kCompute);
}

TEST_F(MemberCoreTest, ARollbackToTheStepOfTheHeldSumAppliesItFirst) {
  VoteOnStepOne();
  GroupExchangeReply rolled = Member(5, 1, 1, kTwo);
  rolled.lineage = LineageNumber(2);
  rolled.base = StepNumber(1);
  core_.OnReply(rolled);
  ASSERT_EQ(core_.NextTask().kind, Kind::kApply);
  core_.OnApplied();
  EXPECT_EQ(core_.state(), Label(2, 1));
}

TEST_F(MemberCoreTest, AFetchedSumOfAnEarlierLineageIsOfNoUse) {
  core_.OnReply(Member(1, 0, 0, kTwo));
  core_.OnReply(Member(3, 1, 2, kTwo));
  ASSERT_TRUE(TakeTransfer().has_value());
  GroupExchangeReply rolled = Member(5, 0, 0, kTwo);
  rolled.lineage = LineageNumber(2);
  core_.OnReply(rolled);
  EXPECT_TRUE(Effects().stop_transfer);
  core_.OnSumFetched(StepNumber(1));
  EXPECT_EQ(core_.state(), Label(2, 0));
  EXPECT_EQ(core_.NextTask().kind, Kind::kCompute);
}

/// What the memory holds is neither the old state nor the new one.
TEST_F(MemberCoreTest, ARollbackDuringAnApplyWaitsForItsEnd) {
  VoteOnStepOne();
  core_.OnReply(Member(1, 1, 1, kTwo));
  ASSERT_EQ(core_.NextTask().kind, Kind::kApply);
  GroupExchangeReply rolled = Learner(0);
  rolled.lineage = LineageNumber(2);
  core_.OnReply(rolled);
  EXPECT_EQ(core_.state(), Label(1, 0));
  core_.OnApplied();
  EXPECT_FALSE(core_.state().has_value());
}

TEST_F(MemberCoreTest, ALearnerCopiesOnlyOutsideOfTheLoopAndHasNoStateMeanwhile) {
  core_.OnReply(Member(1, 0, 0, kTwo));
  StepRunNumber run = core_.NextTask().run;
  GroupExchangeReply learner = Learner(5);
  learner.source = StateSource{Label(1, 4), {}, {}};
  learner.keep_sums = true;
  core_.OnReply(learner);
  EXPECT_FALSE(TakeTransfer().has_value());
  core_.OnComputed(run, {});
  EXPECT_EQ(core_.NextTask().kind, Kind::kWait);
  ASSERT_EQ(TakeTransfer()->kind, GroupTransfer::Kind::kCopyState);
  EXPECT_FALSE(core_.Request().state.has_value());
  EXPECT_EQ(core_.phase(), MemberPhase::kLearning);
  core_.OnTransferFailed(now_);
  EXPECT_FALSE(TakeTransfer().has_value());
  now_ = *Effects().again;
  ASSERT_TRUE(TakeTransfer().has_value());
  core_.OnStateCopied(Label(1, 4));
  EXPECT_EQ(core_.Request().state, Label(1, 4));
  EXPECT_EQ(TakeTransfer()->step, StepNumber(5));
}

TEST_F(MemberCoreTest, AStateWithoutItsLaterSumsIsNotCopiedAgain) {
  GroupExchangeReply learner = Learner(5);
  learner.initial_is_base = false;
  learner.source = StateSource{Label(1, 4), {}, {}};
  learner.keep_sums = true;
  core_.OnReply(learner);
  ASSERT_TRUE(TakeTransfer().has_value());
  core_.OnStateCopied(Label(1, 4));
  ASSERT_TRUE(TakeTransfer().has_value());
  core_.OnSumMissing(StepNumber(5));
  EXPECT_FALSE(core_.state().has_value());
  EXPECT_FALSE(TakeTransfer().has_value());
  EXPECT_EQ(core_.phase(), MemberPhase::kIdle);
  learner.news = ++news_;
  learner.source->label = Label(1, 5);
  core_.OnReply(learner);
  EXPECT_TRUE(TakeTransfer().has_value());
}

TEST_F(MemberCoreTest, ACaptureIsOfTheStateThatWasAskedForAndHoldsTheNextStepUp) {
  GroupExchangeReply reply = Member(1, 0, 0, kTwo);
  reply.rank = 1;
  reply.work->share = {kTwo};
  reply.capture = StateCapture{StepNumber(1), AttemptNumber(1), 2, "at/"};
  core_.OnReply(reply);
  EXPECT_FALSE(TakeCapture().has_value());
  ASSERT_EQ(core_.NextTask().kind, Kind::kCompute);
  Compute({0, 1});
  core_.OnSum(AttemptNumber(1), StepNumber(1), 77);
  reply.news = ++news_;
  reply.step = StepNumber(1);
  reply.step_attempt = AttemptNumber(1);
  reply.work->step = StepNumber(2);
  core_.OnReply(reply);
  ASSERT_EQ(core_.NextTask().kind, Kind::kApply);
  EXPECT_FALSE(TakeCapture().has_value());
  core_.OnApplied();
  std::optional<CaptureOrder> order = TakeCapture();
  EXPECT_EQ(order, (CaptureOrder{Label(1, 1), 1, 2, "at/", true}));
  // The next step is computed, but not applied, while the copy is made.
  ASSERT_EQ(core_.NextTask().kind, Kind::kCompute);
  Compute({0, 1});
  core_.OnSum(AttemptNumber(1), StepNumber(2), 78);
  reply.news = ++news_;
  reply.step = StepNumber(2);
  core_.OnReply(reply);
  EXPECT_EQ(core_.NextTask().kind, Kind::kWait);
  core_.OnCaptured({.stripe = 0, .bytes = 8, .crc = 9, .object = ""});
  std::optional<HeldCapture> held = core_.Request().capture;
  EXPECT_EQ(held, (HeldCapture{Label(1, 1), 2, {1, 8, 9, ""}, 0}));
  core_.OnStored(Label(1, 0), "other");
  core_.OnStored(Label(1, 1), "at/1");
  EXPECT_TRUE(core_.request_changed());
  EXPECT_EQ(core_.Request().capture->stripe.object, "at/1");
  EXPECT_FALSE(TakeCapture().has_value());
  reply.news = ++news_;
  reply.capture->object_prefix = "new/";
  core_.OnReply(reply);
  ASSERT_TRUE(TakeCapture().has_value()) << "it is stored anew under another name";
  core_.OnCaptured({});
  core_.OnStored(Label(1, 1), "at/1");
  EXPECT_EQ(core_.Request().capture->stripe.object, "");
  EXPECT_EQ(core_.NextTask().kind, Kind::kApply);
}

TEST_F(MemberCoreTest, NothingIsCapturedDuringAnApply) {
  VoteOnStepOne();
  core_.OnReply(Member(1, 1, 1, kTwo));
  ASSERT_EQ(core_.NextTask().kind, Kind::kApply);
  GroupExchangeReply reply = Member(1, 1, 1, kTwo);
  reply.capture = StateCapture{StepNumber(0), AttemptNumber(1), 2, ""};
  core_.OnReply(reply);
  EXPECT_FALSE(TakeCapture().has_value());
}

TEST_F(MemberCoreTest, SumsAreKeptForLearnersOnly) {
  core_.OnReply(Member(1, 0, 0, kTwo));
  EXPECT_FALSE(core_.SumsKeptAfter().has_value());
  GroupExchangeReply reply = Member(1, 0, 0, kTwo);
  reply.keep_sums = true;
  core_.OnReply(reply);
  EXPECT_EQ(core_.SumsKeptAfter(), StepNumber(0));
}

TEST_F(MemberCoreTest, AProcessWithoutItsInitialStateRestartsIfNobodyHasAState) {
  VoteOnStepOne();
  core_.OnReply(Member(1, 1, 1, kTwo));
  ASSERT_EQ(core_.NextTask().kind, Kind::kApply);
  core_.OnApplied();
  GroupExchangeReply rolled = Learner(0);
  rolled.lineage = LineageNumber(2);
  core_.OnReply(rolled);
  EXPECT_EQ(core_.NextTask().kind, Kind::kWait);
  rolled.news = ++news_;
  rolled.members.clear();
  core_.OnReply(rolled);
  EXPECT_EQ(core_.NextTask().kind, Kind::kRestart);
}

TEST_F(MemberCoreTest, AMemberSupersedesACallOnlyForWhatTheOthersWaitFor) {
  core_.OnReply(Member(1, 0, 0, kTwo));
  (void)core_.Request();
  ASSERT_EQ(core_.NextTask().kind, Kind::kCompute);
  Compute({0, 1});
  EXPECT_FALSE(core_.request_changed());
  core_.Leave();
  EXPECT_TRUE(core_.request_changed());
}

TEST_F(MemberCoreTest, ThatACommittedSumIsAppliedSupersedesNoCall) {
  VoteOnStepOne();
  core_.OnReply(Member(1, 1, 1, kTwo));
  ASSERT_TRUE(core_.Request().sum.has_value());
  ASSERT_EQ(core_.NextTask().kind, Kind::kApply);
  core_.OnApplied();
  EXPECT_FALSE(core_.request_changed());
  ASSERT_EQ(core_.NextTask().kind, Kind::kCompute);
  Compute({0, 1});
  core_.OnSum(AttemptNumber(1), StepNumber(2), 78);
  EXPECT_TRUE(core_.request_changed());
}

TEST_F(MemberCoreTest, TheMasterHearsOfALostVote) {
  VoteOnStepOne();
  EXPECT_FALSE(core_.request_changed());
  core_.OnReply(Member(2, 0, 0, kTwo));
  EXPECT_TRUE(core_.request_changed());
}

TEST_F(MemberCoreTest, ASourceThatCameWhileASumWasMissingIsCopied) {
  core_.OnReply(Member(1, 0, 0, kTwo));
  GroupExchangeReply reply = Learner(2);
  reply.keep_sums = true;
  core_.OnReply(reply);
  ASSERT_EQ(TakeTransfer()->kind, GroupTransfer::Kind::kFetchSum);
  reply.news = ++news_;
  reply.source = StateSource{Label(1, 2), {}, {}};
  core_.OnReply(reply);
  core_.OnSumMissing(StepNumber(1));
  EXPECT_FALSE(core_.state().has_value());
  const std::optional<GroupTransfer> transfer = TakeTransfer();
  ASSERT_TRUE(transfer.has_value());
  EXPECT_EQ(transfer->kind, GroupTransfer::Kind::kCopyState);
}

TEST_F(MemberCoreTest, OnlyAMemberWithWorkVotesNext) {
  EXPECT_FALSE(core_.NextCallIsVote());
  core_.OnReply(Learner(0));
  EXPECT_FALSE(core_.NextCallIsVote());
  core_.OnReply(Member(1, 0, 0, kTwo));
  EXPECT_TRUE(core_.NextCallIsVote());
  GroupExchangeReply reply = Member(1, 0, 0, kTwo);
  reply.capture = StateCapture{StepNumber(0), AttemptNumber(1), 2, ""};
  core_.OnReply(reply);
  EXPECT_FALSE(core_.NextCallIsVote());
  reply = Member(1, 0, 0, kTwo);
  reply.directive = JobDirective::kDrain;
  core_.OnReply(reply);
  EXPECT_FALSE(core_.NextCallIsVote());
  core_.OnReply(Member(1, 0, 0, kTwo));
  core_.Leave();
  EXPECT_FALSE(core_.NextCallIsVote());
}

TEST_F(MemberCoreTest, AnAnswerWithoutMembersIsOfThoseThatItKnows) {
  core_.OnReply(Member(1, 0, 0, kTwo));
  GroupExchangeReply same = Member(1, 0, 0, kTwo);
  const std::vector<GroupMember> members = std::exchange(same.members, {});
  core_.OnReply(same);
  ASSERT_TRUE(core_.WantedRing().has_value());
  EXPECT_EQ(core_.WantedRing()->members, members);
  GroupExchangeReply other = Member(2, 0, 0, kTwo);
  other.members = {{"a", 1, {}}};
  core_.OnReply(other);
  EXPECT_EQ(core_.WantedRing()->members, other.members);
}

TEST_F(MemberCoreTest, EffectsSayOnceWhatHasChanged) {
  MemberEffects effects = core_.TakeEffects(now_);
  EXPECT_TRUE(effects.call && !effects.task && !effects.ring && !effects.sums);
  core_.OnReply(Member(1, 0, 0, kTwo));
  effects = core_.TakeEffects(now_);
  EXPECT_TRUE(effects.task && effects.ring && effects.sums);
  effects = core_.TakeEffects(now_);
  EXPECT_FALSE(effects.ring || effects.sums);
  EXPECT_TRUE(effects.task) << "until the thread has come for it";
  core_.OnReply(Member(2, 0, 0, kTwo));
  effects = core_.TakeEffects(now_);
  EXPECT_TRUE(effects.ring && effects.sums) << "of another attempt";
  VoteOnStepOne();
  EXPECT_FALSE(core_.TakeEffects(now_).task);
  GroupExchangeReply reply = Learner(7);
  reply.source = StateSource{Label(1, 7), {}, {}};
  core_.OnReply(reply);
  EXPECT_FALSE(core_.TakeEffects(now_).transfer.has_value()) << "the trainer is not in the library";
  EXPECT_EQ(core_.NextTask().kind, Kind::kWait);
  EXPECT_TRUE(core_.TakeEffects(now_).transfer.has_value());
  EXPECT_FALSE(core_.TakeEffects(now_).transfer.has_value());
}

TEST_F(MemberCoreTest, EffectsThatNobodyHasLookedAtStay) {
  MemberEffects effects{.ring = true, .stop_transfer = true, .capture = CaptureOrder{}};
  effects.Add({.sums = true, .digest = StateLabel{}});
  EXPECT_TRUE(effects.ring && effects.sums && effects.stop_transfer);
  EXPECT_TRUE(effects.capture.has_value() && effects.digest.has_value());
  effects.Add({.transfer = GroupTransfer{}});
  EXPECT_FALSE(effects.stop_transfer);
}

}  // namespace
}  // namespace muster::sdk
