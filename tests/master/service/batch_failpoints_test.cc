#include "master/service/batch_failpoints.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <set>
#include <sstream>
#include <string>

#include "base/failpoint.h"
#include "base/file.h"
#include "tests/master/core/core_fixture.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

#if MUSTER_WITH_FAILPOINTS

namespace muster {
namespace {

using ::testing::Contains;
using ::testing::IsEmpty;
using testing::IsOk;
using ::testing::IsSupersetOf;
using ::testing::Not;

class BatchFailpointsTest : public ::testing::Test, public testing::CoreFixture {
 protected:
  BatchFailpointsTest() {
    options.datasets.push_back(testing::PlanFor("test", DatasetMode::kEvaluate, 1, 1));
    Start();
    points_.emplace(*core);
  }
  ~BatchFailpointsTest() override { EXPECT_THAT(ArmFailpoints({}), IsOk()); }

  /// The failpoints that are passed around the sync of the core's mutations; "x" for
  /// "x.before-sync" with "x.after-sync".
  std::set<std::string> Pass() {
    const std::string file = folder_.File(std::to_string(++files_));
    EXPECT_THAT(ArmFailpoints({.reached_file = file}), IsOk());
    const std::vector<Mutation> mutations = core->TakeMutations();
    points_->PassBeforeSync(mutations);
    EXPECT_THAT(journal.Write(mutations), IsOk());
    points_->PassAfterSync();
    std::set<std::string> passed, before;
    std::istringstream lines(ReadFile(file, 10'000).value_or(""));
    for (std::string line; std::getline(lines, line);) {
      const std::string name = line.substr(0, line.find('.'));
      if (line.ends_with(".before-sync")) before.insert(name);
      if (line.ends_with(".after-sync")) passed.insert(name);
    }
    EXPECT_EQ(passed, before);
    return passed;
  }
  std::vector<ShardGrant> Grants(uint32_t want) {
    WorkerExchangeRequest request = Request();
    request.want = want;
    return core->ExchangeWorker(request, At()).value().grants;
  }
  void ReportDone(const std::vector<ShardGrant>& grants) {
    WorkerExchangeRequest request = Request();
    Hold(grants, &request);
    for (const ShardGrant& grant : grants) {
      request.done.push_back({grant.shard, grant.token, grant.restore_epoch, {}, {}});
    }
    ASSERT_THAT(core->ExchangeWorker(request, At()).status(), IsOk());
  }
  void ReportFailure(const ShardGrant& grant, const std::vector<ShardGrant>& holding) {
    WorkerExchangeRequest request = Request();
    Hold(holding, &request);
    request.returned.push_back({grant.shard, grant.token, true, "broken", false});
    ASSERT_THAT(core->ExchangeWorker(request, At()).status(), IsOk());
  }

  testing::TempDir folder_;
  int files_ = 0;
  std::optional<BatchFailpoints> points_;
};

TEST_F(BatchFailpointsTest, SayWhatTheBatchSays) {
  EXPECT_THAT(Pass(), IsEmpty()) << "the start was written";
  ASSERT_THAT(core->RegisterServer({"ps-0", 9, {{"unix:/x"}}}, At()).status(), IsOk());
  std::set<std::string> passed = Pass();
  EXPECT_THAT(passed, IsSupersetOf({"node", "owner-epoch"}));
  EXPECT_THAT(passed, Not(Contains("restore"))) << "no server had it before";

  const std::vector<ShardGrant> grants = Grants(4);
  Pass();
  const std::vector<ShardGrant> rest = {grants[0], grants[1], grants[2]};
  ReportFailure(grants[3], rest);
  EXPECT_THAT(Pass(), Contains("failure"));
  ReportDone(rest);
  passed = Pass();
  EXPECT_THAT(passed, Contains("done"));
  EXPECT_THAT(passed, Not(Contains("failure")));
  ReportDone(Grants(1));
  EXPECT_THAT(Pass(), Contains("done"));
  ReportDone(Grants(1));
  passed = Pass();
  EXPECT_THAT(passed, Contains("evaluate"));
  EXPECT_THAT(passed, Not(Contains("commit")));

  ASSERT_THAT(core->RegisterServer({"ps-0", 10, {{"unix:/y"}}}, At()).status(), IsOk());
  passed = Pass();
  EXPECT_THAT(passed, IsSupersetOf({"owner-epoch", "restore"}));
  EXPECT_THAT(passed, Not(Contains("commit"))) << "shards run again";
  EXPECT_THAT(passed, Not(Contains("manifest")));
}

TEST_F(BatchFailpointsTest, AnAcceptedSnapshotIsAManifestAndWhatItCoversACommit) {
  Register(9);
  points_.emplace(*core);
  ReportDone(Grants(4));
  Pass();
  core->ExchangeServer(ServerRequest(), At());  // it serves what it is to own
  now += std::chrono::seconds(11);
  const ServerExchangeReply asked = core->ExchangeServer(ServerRequest(), At());
  Pass();
  ASSERT_EQ(asked.snapshots.size(), 2u);
  ServerExchangeRequest request = ServerRequest();
  for (const SnapshotCommand& command : asked.snapshots) {
    request.snapshots.push_back(
        {command.partition,
         command.epoch,
         {command.number, command.cut, {{"f" + ToString(command.number), 1, command.number}}}});
  }
  core->ExchangeServer(request, At());
  EXPECT_THAT(Pass(), IsSupersetOf({"commit", "manifest"}));
}

}  // namespace
}  // namespace muster

#endif
