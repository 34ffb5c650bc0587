// A server and its master: registration, a master that is away or another, heartbeats, leaving.
#include "proto/rpc/grpc_status.h"
#include "tests/ps/service/parameter_server_fixture.h"

namespace muster::ps {
namespace {

using ::muster::testing::IsOk;
using ::muster::testing::StatusIs;
using ::testing::ElementsAre;
using testing::FakeMaster;
using ::testing::HasSubstr;
using testing::OwnsAll;
using testing::ParameterServerTest;
using testing::World;
using wire::PartCode;

TEST_F(ParameterServerTest, GoesOnServingWhileTheMasterIsAwayAndFindsTheNextOne) {
  StartServing();
  EXPECT_EQ(Push(2, 1, 7, 3, 0), PartCode::kOk);
  const int port = master_->port();
  master_.reset();
  EXPECT_EQ(Push(2, 1, 7, 3, 1), PartCode::kOk);
  EXPECT_THAT(Pull(2, 1, 7), ElementsAre(6, 6));
  Change([](World* world) { world->master = 2; });
  master_ = std::make_unique<FakeMaster>(port);
  Script();
  EXPECT_TRUE(master_->WaitFor([](const ServerExchangeRequest& request) {
    return OwnsAll(request, 1) && request.counters.parts_applied == 2;
  }));
  EXPECT_THAT(Pull(2, 1, 7), ElementsAre(6, 6));
}

TEST_F(ParameterServerTest, EndsIfTheMasterIsAwayForTooLong) {
  StartServing();
  master_.reset();
  EXPECT_THAT(ResultAfter(2 * testing::kSilenceMax),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("has not answered")));
  server_.reset();
}

TEST_F(ParameterServerTest, EndsWithoutAMasterAfterTheEndOfTheJob) {
  StartServing();
  Change([](World* world) { world->drained = true; });
  for (int i = 0; i < 3; ++i) {  // so an answer that says so has come
    ASSERT_TRUE(
        master_->WaitFor([](const ServerExchangeRequest& request) { return OwnsAll(request, 1); }));
  }
  master_.reset();
  EXPECT_THAT(ResultAfter(std::chrono::minutes(2)), IsOk());
  server_.reset();
}

TEST_F(ParameterServerTest, ABusyLaneStopsNeitherTheHeartbeatNorTheOtherLanes) {
  StartServing();
  EXPECT_EQ(Push(2, 1, 7, 3, 0), PartCode::kOk);
  clock_.Shut("ps-0.1");
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(
        master_->WaitFor([](const ServerExchangeRequest& request) { return OwnsAll(request, 1); }));
  }
  EXPECT_THAT(Pull(2, 1, 7), ElementsAre(3, 3));
  // Commands for the busy lane are not lost.
  Change([](World* world) { world->epoch = 2; });
  ASSERT_TRUE(master_->WaitFor([](const ServerExchangeRequest& request) {
    return std::ranges::count(request.owned, OwnerEpoch(2), &OwnedPartition::epoch) == 2;
  }));
  clock_.Open();
  EXPECT_TRUE(
      master_->WaitFor([](const ServerExchangeRequest& request) { return OwnsAll(request, 2); }));
}

TEST_F(ParameterServerTest, AServerThatIsToldToEndWaitsForNoLaneThatHangs) {
  StartServing();
  clock_.Shut("ps-0.1");
  for (int i = 0; i < 3; ++i) {  // so the lane has been asked, and has not answered
    ASSERT_TRUE(
        master_->WaitFor([](const ServerExchangeRequest& request) { return OwnsAll(request, 1); }));
  }
  clock_.PutForward(2 * testing::kSilenceMax);
  server_->RequestLeave();
  EXPECT_TRUE(
      master_->WaitFor([](const ServerExchangeRequest& request) { return request.leaving; }));
  Change([](World* world) { world->drained = true; });
  clock_.Open();  // its thread can be joined
  EXPECT_THAT(result_.get(), IsOk());
  server_.reset();
}

TEST_F(ParameterServerTest, AMasterOfAnotherJobIsLikeOneThatIsAway) {
  StartServing();
  EXPECT_EQ(Push(2, 1, 7, 3, 0), PartCode::kOk);
  const int port = master_->port();
  master_ = nullptr;
  Change(
      [](World* world) { world->unknown = true; });  // what the other one says of its own servers
  master_ = std::make_unique<FakeMaster>(port, "id-2");
  Script();
  ASSERT_TRUE(master_->WaitForStranger());
  EXPECT_THAT(Pull(2, 1, 7), ElementsAre(3, 3));
  master_ = nullptr;
  Change([](World* world) { world->unknown = false; });
  master_ = std::make_unique<FakeMaster>(port);
  Script();
  EXPECT_TRUE(
      master_->WaitFor([](const ServerExchangeRequest& request) { return OwnsAll(request, 1); }));
}

TEST_F(ParameterServerTest, RegistersWithTheMasterOfItsOwnJobOnly) {
  master_ = std::make_unique<FakeMaster>(0, "id-2");
  const int port = master_->port();
  job_id_ = "id-1";
  Start(master_->address());
  ASSERT_TRUE(master_->WaitForStranger());
  master_ = nullptr;
  master_ = std::make_unique<FakeMaster>(port);
  Script();
  const RegisterServerRequest registration = master_->WaitForRegistration();
  EXPECT_EQ(registration.name, "ps-0");
  EXPECT_EQ(registration.start, StartNumber(4));
}

TEST_F(ParameterServerTest, AMasterThatCancelsItsAnswerIsOnlyAway) {
  StartServing();
  master_->FailExchange({grpc::StatusCode::CANCELLED, "shutting down"});
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(
        master_->WaitFor([](const ServerExchangeRequest& request) { return OwnsAll(request, 1); }));
  }
  EXPECT_EQ(Push(2, 1, 7, 3, 0), PartCode::kOk);
}

TEST_F(ParameterServerTest, EndsWhenTheMasterNoLongerKnowsIt) {
  StartServing();
  Change([](World* world) { world->unknown = true; });
  EXPECT_THAT(result_.get(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("must end")));
  server_.reset();
}

TEST_F(ParameterServerTest, EndsWhenTheMasterRefusesIt) {
  master_ = std::make_unique<FakeMaster>();
  master_->RefuseRegistration(
      ToGrpcStatus(absl::FailedPreconditionError("this master is of version 0.2, ps-0 of 0.1")));
  Start(master_->address());
  EXPECT_THAT(
      result_.get(),
      StatusIs(absl::StatusCode::kFailedPrecondition,
               HasSubstr("ps-0 cannot register: the master: this master is of version 0.2")));
  server_.reset();
}

TEST_F(ParameterServerTest, ARegistrationIsRepeatedAsTheSameProcess) {
  master_ = std::make_unique<FakeMaster>();
  master_->FailRegistrations({{grpc::StatusCode::UNAVAILABLE, "starting"},
                              {grpc::StatusCode::ABORTED, "overtaken"},
                              {grpc::StatusCode::RESOURCE_EXHAUSTED, "busy"},
                              {grpc::StatusCode::DEADLINE_EXCEEDED, "slow"}});
  Script();
  Start(master_->address());
  ASSERT_TRUE(
      master_->WaitFor([](const ServerExchangeRequest& request) { return OwnsAll(request, 1); }));
  std::vector<uint64_t> nonces;
  for (const RegisterServerRequest& request : master_->registrations()) {
    nonces.push_back(request.nonce);
  }
  EXPECT_THAT(nonces, ElementsAre(99, 99, 99, 99, 99));
}

TEST_F(ParameterServerTest, StopsWhileNoMasterAnswers) {
  Start("127.0.0.1:1");
  EXPECT_THAT(Stop(), IsOk());
}

TEST_F(ParameterServerTest, WhoIsToldToLeaveServesUntilItIsDrained) {
  StartServing();
  EXPECT_EQ(Push(2, 1, 7, 3, 0), PartCode::kOk);
  server_->RequestLeave();
  ASSERT_TRUE(
      master_->WaitFor([](const ServerExchangeRequest& request) { return request.leaving; }));
  EXPECT_EQ(Push(2, 1, 7, 3, 1), PartCode::kOk);
  server_->RequestLeave();
  Change([](World* world) { world->drained = true; });
  EXPECT_THAT(result_.get(), IsOk());
  server_.reset();
}

TEST_F(ParameterServerTest, WhoLeavesWaitsForNoMasterAndNotForEver) {
  StartServing();
  server_->RequestLeave();
  ASSERT_TRUE(
      master_->WaitFor([](const ServerExchangeRequest& request) { return request.leaving; }));
  master_.reset();
  EXPECT_THAT(result_.get(), IsOk());
  leave_timeout_ = std::chrono::milliseconds(1);
  StartServing();
  server_->RequestLeave();
  EXPECT_THAT(result_.get(), IsOk()) << "the master never says that it is drained";
  Start("127.0.0.1:1");
  server_->RequestLeave();
  EXPECT_THAT(result_.get(), IsOk()) << "it never registered";
  server_.reset();
}

}  // namespace
}  // namespace muster::ps
