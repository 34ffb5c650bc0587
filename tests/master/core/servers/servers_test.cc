#include "master/core/servers/servers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/master/core/parts_fixture.h"

namespace muster {
namespace {

using ::testing::IsEmpty;
using testing::PartsFixture;
using ::testing::SizeIs;

class ServersPartTest : public ::testing::Test, protected PartsFixture {};

TEST_F(ServersPartTest, IncarnationsGoOnAfterThoseOfTheJournal) {
  Start();
  EXPECT_EQ(Register(7), ServerIncarnation(41));
  EXPECT_EQ(Register(7), ServerIncarnation(41)) << "the same process";
  EXPECT_EQ(Register(8), ServerIncarnation(42));
  EXPECT_EQ(servers().newest(), ServerIncarnation(42));
}

TEST_F(ServersPartTest, AJobWithoutServersTakesNone) {
  options.servers = 0;
  Start();
  const absl::Status refused = servers().Register({"ps-0", 7, {{"unix:/x"}}, {}}, At()).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.message()), ::testing::HasSubstr("has no servers"));
}

TEST_F(ServersPartTest, SnapshotsOfACallThatWasOvertakenAreNotTaken) {
  Start();
  const ServerIncarnation process = Register(7);
  servers().Exchange(ServerCall(process, 1), At());
  TrainOne();
  Pass(options.snapshot_interval);
  ServerExchangeRequest request = ServerCall(process, 3);
  const ServerExchangeReply reply = servers().Exchange(request, At());
  ASSERT_THAT(reply.snapshots, SizeIs(2));
  request = ServerCall(process, 2);
  request.snapshots = Written(reply.snapshots);
  servers().Exchange(request, At());
  EXPECT_EQ(books().totals.snapshots_accepted, 0u);
  request.sequence = 4;
  servers().Exchange(request, At());
  EXPECT_EQ(books().totals.snapshots_accepted, 2u);
}

TEST_F(ServersPartTest, AFormerProcessIsToldSoAndItsSnapshotsAreNot) {
  Start();
  const ServerIncarnation former = Register(7);
  servers().Exchange(ServerCall(former, 1), At());
  TrainOne();
  Pass(options.snapshot_interval);
  ServerExchangeRequest request = ServerCall(former, 2);
  request.snapshots = Written(servers().Exchange(request, At()).snapshots);
  ASSERT_THAT(request.snapshots, SizeIs(2));
  Register(8);
  request.sequence = 3;
  const ServerExchangeReply reply = servers().Exchange(request, At());
  EXPECT_TRUE(reply.unknown_incarnation);
  EXPECT_THAT(reply.owns, IsEmpty());
  EXPECT_EQ(books().totals.snapshots_accepted, 0u);
}

TEST_F(ServersPartTest, SnapshotsOfAServerThatDrainsAreAskedForUpToWhatWasDone) {
  Start();
  const ServerIncarnation process = Register(7);
  servers().Exchange(ServerCall(process, 1), At());
  TrainOne();
  ServerExchangeRequest request = ServerCall(process, 2);
  EXPECT_THAT(servers().Exchange(request, At()).snapshots, IsEmpty()) << "not yet their time";
  request = ServerCall(process, 3);
  request.leaving = true;
  const ServerExchangeReply reply = servers().Exchange(request, At());
  EXPECT_THAT(reply.snapshots, SizeIs(2));
  EXPECT_FALSE(reply.drained);
  EXPECT_LT(reply.heartbeat_interval, options.server_times.heartbeat_interval);
}

}  // namespace
}  // namespace muster
