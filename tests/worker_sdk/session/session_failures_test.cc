// What the master and the servers may do wrong to a session: the table in
// worker_sdk/session/README.md, row by row.
#include <atomic>
#include <filesystem>
#include <thread>

#include "tests/worker_sdk/session/session_faults.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using SessionFailuresTest = SessionWithFaultsTest;

TEST_F(SessionFailuresTest, ErrorsOfTheMasterThatMayPassAreTriedAgain) {
  const std::vector<grpc::StatusCode> passing = {
      grpc::UNAVAILABLE, grpc::DEADLINE_EXCEEDED, grpc::RESOURCE_EXHAUSTED,
      grpc::ABORTED,     grpc::INTERNAL,          grpc::CANCELLED,
      grpc::UNKNOWN};
  size_t hellos = 0, registrations = 0;
  master_.Plant({.hello =
                     [&] {
                       return hellos < passing.size() ? grpc::Status(passing[hellos++], "soon")
                                                      : grpc::Status::OK;
                     },
                 .registered =
                     [&] {  // the table is there, and the worker does not learn of it
                       return registrations++ == 0 ? grpc::Status(grpc::UNAVAILABLE, "soon")
                                                   : grpc::Status::OK;
                     },
                 .exchange = Times(2, grpc::UNAVAILABLE)});
  AddShard("a");
  AddShard("b");
  master_.EndWhenDone();
  Session session = Connect();
  EXPECT_EQ(hellos, passing.size());
  Table table = SumTable(session);
  EXPECT_TRUE(session.status().ok()) << session.status().message();
  EXPECT_EQ(master_.tables.size(), 1u);
  Train(session, table);
  EXPECT_EQ(session.Finish(), 0);
  EXPECT_EQ(master_.done.size(), 2u);
  ExpectRows(2);
}

TEST_F(SessionFailuresTest, AMasterThatIsAwayForTooLongFailsTheSession) {
  SessionOptions options = Options();
  options.master_away_max_ms = 50;
  Result<Session> session = Session::Connect(options);
  ASSERT_TRUE(session.ok()) << session.status().message();
  master_.Plant({.exchange = [] { return grpc::Status(grpc::UNAVAILABLE, "gone"); }});
  EXPECT_FALSE(session->NextShard().has_value());
  EXPECT_EQ(session->status().code(), Status::Code::kUnavailable);
  EXPECT_THAT(session->status().message(), HasSubstr("has not answered for"));
}

TEST_F(SessionFailuresTest, ErrorsOfTheMasterThatStayAreToldAtOnce) {
  const std::pair<grpc::StatusCode, Status::Code> staying[] = {
      {grpc::INVALID_ARGUMENT, Status::Code::kInvalidArgument},
      {grpc::FAILED_PRECONDITION, Status::Code::kFailedPrecondition},
      {grpc::PERMISSION_DENIED, Status::Code::kInternal},
      {grpc::UNAUTHENTICATED, Status::Code::kInternal},
      {grpc::UNIMPLEMENTED, Status::Code::kUnimplemented},
      {grpc::NOT_FOUND, Status::Code::kNotFound},
      {grpc::ALREADY_EXISTS, Status::Code::kAlreadyExists}};
  for (const auto& [code, shown] : staying) {
    faults_ = 0;
    master_.Plant({.hello = Times(1, code)});
    const Result<Session> refused = Session::Connect(Options());
    ASSERT_FALSE(refused.ok()) << code;
    EXPECT_EQ(refused.status().code(), shown) << code;
    EXPECT_THAT(refused.status().message(), HasSubstr("as planted"));
    EXPECT_EQ(faults_, 1) << code;
    faults_ = 0;
    master_.Plant({.registration = Times(1, code)});
    Session session = Connect();
    SumTable(session);
    EXPECT_EQ(session.status().code(), shown) << code;
    EXPECT_EQ(faults_, 1) << code;
    EXPECT_FALSE(session.NextShard().has_value());
  }
  EXPECT_THAT(master_.tables, IsEmpty());
}

TEST_F(SessionFailuresTest, AMasterThatRefusesTheWorkerLaterFailsTheSession) {
  AddShard("a");
  Session session = Connect();
  Table table = SumTable(session);
  std::optional<Shard> shard = session.NextShard();
  ASSERT_TRUE(shard.has_value());
  master_.Plant({.exchange = Times(1, grpc::PERMISSION_DENIED)});
  EXPECT_FALSE(session.NextShard().has_value());
  EXPECT_THAT(session.status().message(),
              AllOf(HasSubstr("the master refuses this worker"), HasSubstr("as planted")));
  int minibatches = 0;
  for (Minibatch& batch : shard->Minibatches()) {
    PushOnes(table, batch);
    ++minibatches;
  }
  EXPECT_EQ(minibatches, 0) << "a failed session starts none";
  EXPECT_EQ(session.Finish(), 1);
  EXPECT_EQ(server_->parts_applied(), 0);
}

TEST_F(SessionFailuresTest, AnAnswerToHelloThatCannotBeTrueIsRefused) {
  const auto error = [&](std::function<void(v1::HelloResponse*)> lie) {
    master_.Reply(std::move(lie));
    const Result<Session> session = Session::Connect(Options());
    EXPECT_EQ(session.ok(), false);
    return session.status().message();
  };
  EXPECT_THAT(error([](auto* hello) { hello->set_partition_count(0); }),
              HasSubstr("has 0 partitions"));
  EXPECT_THAT(error([](auto* hello) { hello->set_partition_count(65'537); }),
              HasSubstr("has 65537 partitions"));
  EXPECT_THAT(error([](auto* hello) { hello->set_wire_encoding("int8"); }),
              HasSubstr("unknown wire encoding \"int8\""));
  EXPECT_THAT(error([](auto* hello) { hello->set_job_id("a b"); }),
              HasSubstr("the id that the master answers"));
  for (const char* encoding : {"float16", "bfloat16", "float32"}) {
    master_.Reply([&](auto* hello) {
      hello->set_wire_encoding(encoding);
      hello->set_partition_count(65'536);
    });
    EXPECT_TRUE(Session::Connect(Options()).ok()) << encoding;
  }
}

TEST_F(SessionFailuresTest, AMapOfAnotherSizeFailsTheSession) {
  AddShard("a");
  master_.Reply([](auto* hello) { hello->set_partition_count(kPartitions + 1); });
  Session session = Connect();
  EXPECT_FALSE(session.NextShard().has_value());
  EXPECT_THAT(session.status().message(),
              AllOf(HasSubstr("the master's map has 8 partitions"), HasSubstr("the job has 9")));
  EXPECT_EQ(session.Finish(), 1);
}

TEST_F(SessionFailuresTest, ASilentCallIsGivenUpAndMadeAgain) {
  master_.Reply([](auto* hello) { hello->set_lease_duration_ms(1); });  // 500 ms a call
  bool silent = true;
  master_.Plant({.silence = [&] { return std::exchange(silent, false); }});
  AddShard("a");
  master_.EndWhenDone();
  Session session = Connect();
  Table table = SumTable(session);
  Train(session, table);
  EXPECT_EQ(session.Finish(), 0);
  EXPECT_EQ(master_.given_up, 1);
  ExpectRows(1);
}

TEST_F(SessionFailuresTest, DonesWhoseAnswerIsLostAreToldAgainAndCountOnce) {
  AddShard("a");
  Session session = Connect();
  Table table = SumTable(session);
  std::optional<Shard> shard = session.NextShard();
  ASSERT_TRUE(shard.has_value());
  for (Minibatch& batch : shard->Minibatches()) PushOnes(table, batch);
  master_.Plant({.exchanged = Times(3, grpc::UNAVAILABLE)});
  master_.EndWhenDone();
  EXPECT_FALSE(session.NextShard().has_value());
  EXPECT_EQ(session.Finish(), 0);
  EXPECT_EQ(master_.done.size(), 1u);
  EXPECT_EQ(master_.refused, 0);
  ExpectRows(1);
}

TEST_F(SessionFailuresTest, AServerThatClosesConnectionsGetsEveryPartOnceMore) {
  AddShard("a");
  master_.EndWhenDone();
  std::atomic<int> closed = 0;
  // Before the work and, as the next one is of the same request, after it.
  server_->before_answer = [&](const wire::Header& header) {
    return header.kind != wire::Kind::kPush || closed++ % 2 == 1;
  };
  Session session = Connect();
  Table table = SumTable(session);
  Train(session, table);
  EXPECT_EQ(session.Finish(), 0);
  EXPECT_GT(closed, 0);
  EXPECT_GT(server_->connections(), 1);
  ExpectRows(1);
}

TEST_F(SessionFailuresTest, AServerThatAsksForPatienceIsAskedAgain) {
  // Without a heartbeat, only the session's own timer sends again.
  master_.Reply([](auto* hello) { hello->set_heartbeat_interval_ms(3'600'000); });
  AddShard("a");
  master_.EndWhenDone();
  std::atomic<int> refused = 0;
  server_->refuse = [&](uint32_t) {
    return refused++ < 6 ? wire::PartCode::kRetry : wire::PartCode::kOk;
  };
  Session session = Connect();
  Table table = SumTable(session);
  while (std::optional<Shard> shard = session.NextShard()) {
    for (Minibatch& batch : shard->Minibatches()) {
      batch.Pull(table, std::vector<uint64_t>{1000, 1001});
      PushOnes(table, batch);
    }
  }
  EXPECT_EQ(session.Finish(), 0);
  EXPECT_GT(refused, 6);
  ExpectRows(1);
}

TEST_F(SessionFailuresTest, APushThatAServerCallsBadFailsItsShardWithTheServersWords) {
  AddShard("a");
  server_->refuse = [](uint32_t) { return wire::PartCode::kBadRequest; };
  Session session = Connect();
  Table table = SumTable(session);
  std::optional<Shard> shard = session.NextShard();
  ASSERT_TRUE(shard.has_value());
  for (Minibatch& batch : shard->Minibatches()) PushOnes(table, batch);
  master_.WaitFor([&] { return !master_.returned.empty(); });
  EXPECT_TRUE(master_.returned[0].failed);
  EXPECT_FALSE(master_.returned[0].fatal);
  EXPECT_EQ(master_.returned[0].reason, "ps-0 refused a push of this worker: why");
  EXPECT_TRUE(session.status().ok()) << session.status().message();
}

TEST_F(SessionFailuresTest, APullThatAServerCallsBadFailsTheSession) {
  AddShard("a");
  server_->refuse = [](uint32_t) { return wire::PartCode::kBadRequest; };
  Session session = Connect();
  Table table = SumTable(session);
  std::optional<Shard> shard = session.NextShard();
  ASSERT_TRUE(shard.has_value());
  int minibatches = 0;
  for (Minibatch& batch : shard->Minibatches()) {
    const Rows rows = batch.Pull(table, std::vector<uint64_t>{3, 4});
    EXPECT_THAT(rows.values(), ElementsAre(0, 0, 0, 0));
    ++minibatches;
  }
  EXPECT_EQ(minibatches, 1);
  EXPECT_EQ(session.status().code(), Status::Code::kInternal);
  EXPECT_THAT(session.status().message(), HasSubstr("refused a pull of this worker"));
  EXPECT_FALSE(session.NextShard().has_value());
  EXPECT_EQ(session.Finish(), 1);
}

/// The answer to requests of `kind`: the server calls the frame malformed.
std::function<void(std::string*)> Refusal(wire::Kind kind, std::atomic<int>* times) {
  return [kind, times](std::string* frame) {
    const absl::StatusOr<wire::Header> answer = wire::DecodeHeader(
        std::span(reinterpret_cast<const std::byte*>(frame->data()), wire::kHeaderBytes)
            .first<wire::kHeaderBytes>());
    MUSTER_CHECK(answer.ok());
    if (answer->kind != kind || (*times)-- <= 0) return;
    wire::Header header;
    header.kind = wire::Kind::kError;
    header.request = answer->request;
    *frame = sdk::AnswerFrame(header, wire::EncodeError("that is no frame"), "");
  };
}

TEST_F(SessionFailuresTest, AFrameThatIsCalledMalformedOnceIsSentAgain) {
  AddShard("a");
  master_.EndWhenDone();
  std::atomic<int> pushes = 1;
  server_->damage = Refusal(wire::Kind::kPushReply, &pushes);
  Session session = Connect();
  Table table = SumTable(session);
  Train(session, table);
  EXPECT_EQ(session.Finish(), 0);
  EXPECT_LE(pushes, 0);
  ExpectRows(1);
}

TEST_F(SessionFailuresTest, AStaleLeaseIsDroppedAndTheShardComesAgain) {
  AddShard("a");
  master_.EndWhenDone();
  Session session = Connect();
  Table table = SumTable(session);
  std::atomic<bool> stale = true;
  server_->refuse = [&](uint32_t) {
    return stale ? wire::PartCode::kStaleLease : wire::PartCode::kOk;
  };
  int runs = 0;
  while (std::optional<Shard> shard = session.NextShard()) {
    ++runs;
    for (Minibatch& batch : shard->Minibatches()) {
      PushOnes(table, batch);
      batch.Commit();
      if (!stale.exchange(false)) continue;
      // Until the answer is there; then the loop ends.
      while (batch.Pull(table, KeysOf(batch)).num_keys() == 0) {
      }
      master_.ExpireLeases();
    }
  }
  EXPECT_EQ(session.Finish(), 0);
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(master_.done.size(), 1u);
  ExpectRows(1);
}

TEST_F(SessionFailuresTest, AFailureEndsTheWaitsOfOtherThreadsAndHandsBackWhatIsHeld) {
  AddShard("a");
  Session session = Connect();
  std::optional<Shard> held = session.NextShard();
  ASSERT_TRUE(held.has_value());
  master_.HoldShards(true);
  std::thread waiting([&] { EXPECT_FALSE(session.NextShard().has_value()); });
  master_.WaitFor([&] { return master_.wanted > 0; });
  held->Minibatches().begin();
  session.SparseTable({.name = "t", .dim = 0});
  waiting.join();
  master_.WaitFor([&] { return master_.returned.size() == 1; });
  EXPECT_FALSE(master_.returned[0].failed) << "the shard is not to blame";
  EXPECT_EQ(session.Finish(), 1);
}

TEST_F(SessionFailuresTest, TheFirstFailureIsTheOneThatIsTold) {
  Session session = Connect();
  session.SparseTable({.name = "first", .dim = 0});
  const std::string first = session.status().message();
  EXPECT_THAT(first, HasSubstr("first"));
  session.SparseTable({.name = "second", .dim = 0});
  EXPECT_EQ(session.status().message(), first);
}

TEST_F(SessionFailuresTest, AWaitForShardsThatIsOverAsksForNoMore) {
  master_.Reply([](auto* hello) { hello->set_shards_ahead(0); });
  AddShard("a");
  Session session = Connect();
  std::optional<Shard> shard = session.NextShard();
  ASSERT_TRUE(shard.has_value());
  AwaitExchanges(2);
  master_.WaitFor([&] {
    EXPECT_EQ(master_.wanted, 0u);
    return true;
  });
}

TEST_F(SessionFailuresTest, AMasterAndAWorkerMustBothBeNamed) {
  for (const bool master : {false, true}) {
    SessionOptions options = Options();
    (master ? options.worker_name : options.master_address).clear();
    EXPECT_THAT(Session::Connect(options).status().message(), HasSubstr("is not given"));
  }
}

TEST_F(SessionFailuresTest, AJobWithAGroupHasNoShardsForLoops) {
  AddShard("a");
  master_.Reply([](auto* hello) { hello->set_group(true); });
  Session session = Connect();
  EXPECT_FALSE(session.NextShard().has_value());
  EXPECT_EQ(session.status().code(), Status::Code::kInvalidArgument);
  EXPECT_THAT(session.status().message(), HasSubstr("use Session::Group"));
}

TEST_F(SessionFailuresTest, LoopsOfAFirstStartDoNotWaitForEachOther) {
  AddShard("a");
  AddShard("b");
  SessionOptions options = Options();
  options.start = 1;
  Session session = std::move(Session::Connect(options)).value();
  std::optional<Shard> first = session.NextShard();
  ASSERT_TRUE(first.has_value());
  std::thread other([&] { EXPECT_TRUE(session.NextShard().has_value()); });
  other.join();
}

TEST_F(SessionFailuresTest, AfterARestartAShardThatFailedProvesNothing) {
  for (const char* name : {"a", "b", "c"}) AddShard(name);
  master_.Reply([](auto* hello) { hello->set_shards_ahead(3); });
  SessionOptions options = Options();
  options.start = 2;
  Session session = std::move(Session::Connect(options)).value();
  session.NextShard()->Fail("not this one");
  std::optional<Shard> alone = session.NextShard();
  ASSERT_TRUE(alone.has_value());
  std::atomic<bool> left = false;
  std::thread other([&] {
    std::optional<Shard> third = session.NextShard();
    EXPECT_TRUE(third.has_value());
    EXPECT_TRUE(left) << "a crash now would be charged to no shard";
  });
  AwaitExchanges(5);  // time for the other thread to do what it must not
  left = true;
  for ([[maybe_unused]] Minibatch& batch : alone->Minibatches()) {
  }
  other.join();
}

TEST_F(SessionFailuresTest, AFileThatIsNotThereIsFatalAndAnUnreadableOneIsNot) {
  std::filesystem::remove(AddShard("a"));
  Session session = Connect();
  std::thread waiting([&] { EXPECT_FALSE(session.NextShard().has_value()); });
  master_.WaitFor([&] { return !master_.returned.empty(); });
  EXPECT_TRUE(master_.returned[0].failed);
  EXPECT_TRUE(master_.returned[0].fatal);
  EXPECT_THAT(master_.returned[0].reason, HasSubstr(dir_.File("a")));
  EXPECT_TRUE(ParseSlot(*ReadFile(dir_.File("slot"), 4'096))->computing.empty());
  const std::string path = AddShard("b");
  std::filesystem::remove(path);
  std::filesystem::create_directory(path);
  master_.WaitFor([&] { return master_.returned.size() == 2; });
  EXPECT_TRUE(master_.returned[1].failed);
  EXPECT_THAT(master_.returned[1].reason, HasSubstr(dir_.File("b")));
  session.Leave();
  waiting.join();
}

TEST_F(SessionFailuresTest, FilesAreReadBelowTheDataRootOfThisMachine) {
  const std::string path = AddShard("a");
  std::filesystem::create_directory(dir_.File("here"));
  std::filesystem::rename(path, dir_.File("here") + "/a");
  master_.EndWhenDone();
  SessionOptions options = Options();
  const std::string there = std::filesystem::path(path).parent_path();
  options.data_root = there + "=" + dir_.File("here");
  Session session = std::move(Session::Connect(options)).value();
  Table table = SumTable(session);
  Train(session, table);
  EXPECT_EQ(session.Finish(), 0);
  ExpectRows(1);
}

}  // namespace
}  // namespace muster
