#include "master/core/nodes/node_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <variant>

namespace muster {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr size_t kMany = 100;

/// The names of the nodes whose records are journaled.
std::vector<std::string> Journaled(NodeTable* nodes) {
  std::vector<Mutation> mutations;
  nodes->Collect(&mutations);
  std::vector<std::string> names;
  for (const Mutation& mutation : mutations) {
    if (const auto* record = std::get_if<NodeRecord>(&mutation)) names.push_back(record->name);
    if (const auto* gone = std::get_if<EraseNode>(&mutation)) names.push_back("-" + gone->name);
  }
  return names;
}

NodeRecord Server(const std::string& name, uint64_t incarnation) {
  NodeRecord record;
  record.name = name;
  record.role = ToString(NodeRole::kServer);
  record.state = NodeState::kRunning;
  record.incarnation = incarnation;
  record.lanes = {{"unix:/" + name}};
  return record;
}

TEST(NodeTableTest, ServersAreNumberedByTheirNames) {
  for (const uint32_t number : {0u, 7u, 12u, 4'294'967'295u}) {
    const std::string name = "ps-" + std::to_string(number);
    EXPECT_EQ(NodeTable::ServerName(ServerId(number)), name);
    EXPECT_EQ(NodeTable::ServerIdOf(name), ServerId(number));
  }
  for (const char* name :
       {"", "ps", "ps-", "ps-x", "ps-1x", "ps- 1", "ps--1", "ps-07", "ps-4294967296", "worker-1"}) {
    EXPECT_EQ(NodeTable::ServerIdOf(name), std::nullopt) << name;
  }
}

TEST(NodeTableTest, AServerIsFoundByItsNumber) {
  NodeTable nodes({{"ps-1", Server("ps-1", 5)}}, 2);
  const LeaseTable leases;
  EXPECT_EQ(nodes.FindServer(ServerId(1)), nodes.Find("ps-1"));
  EXPECT_EQ(nodes.FindServer(ServerId(1)), nodes.Find("ps-1")) << "nor when it was found before";
  EXPECT_EQ(nodes.FindServer(ServerId(0)), nullptr);
  EXPECT_EQ(nodes.FindServer(ServerId(4'000'000'000)), nullptr);
  // A worker with such a name, which is forgotten for another one.
  nodes.Learn(nodes.FindOrAdd("ps-0", NodeRole::kWorker, leases), NodeNews::kHeard);
  EXPECT_EQ(nodes.FindServer(ServerId(0)), nodes.Find("ps-0"));
  nodes.Learn(nodes.Find("ps-0"), NodeNews::kSilent);
  ASSERT_NE(nodes.FindOrAdd("worker-0", NodeRole::kWorker, leases), nullptr);
  EXPECT_EQ(nodes.FindServer(ServerId(0)), nullptr);
}

TEST(NodeTableTest, AProcessIsReplacedByANewerStartOnly) {
  NodeRecord record;
  EXPECT_FALSE(IsReplaced(record, StartNumber(1)));
  record.start = StartNumber(2);
  EXPECT_TRUE(IsReplaced(record, StartNumber(1)));
  EXPECT_FALSE(IsReplaced(record, StartNumber(2)));
  EXPECT_FALSE(IsReplaced(record, StartNumber(0))) << "started by hand: not known";
  record.told_start = StartNumber(4);
  EXPECT_TRUE(IsReplaced(record, StartNumber(3)));
  EXPECT_EQ(RestartsOf(record), 3u);
  EXPECT_EQ(RestartsOf(NodeRecord()), 0u);
}

TEST(NodeTableTest, OnlyChangesAreJournaled) {
  NodeTable nodes({}, kMany);
  Node* node = nodes.FindOrAdd("worker-0", NodeRole::kWorker, LeaseTable());
  EXPECT_EQ(node->record.state, NodeState::kStarting);
  EXPECT_EQ(node->record.role, "worker");
  EXPECT_THAT(Journaled(&nodes), ElementsAre("worker-0"));
  EXPECT_EQ(nodes.FindOrAdd("worker-0", NodeRole::kServer, LeaseTable()), node);
  EXPECT_EQ(node->record.role, "worker") << "it is what it was";
  EXPECT_EQ(nodes.Learn(node, NodeNews::kToldStarted), NodeState::kStarting);
  EXPECT_THAT(Journaled(&nodes), IsEmpty());
  EXPECT_EQ(nodes.Learn(node, NodeNews::kHeard), NodeState::kStarting);
  EXPECT_EQ(node->record.state, NodeState::kRunning);
  EXPECT_THAT(Journaled(&nodes), ElementsAre("worker-0"));
  nodes.KeepStart(node, StartNumber(2));
  EXPECT_THAT(Journaled(&nodes), ElementsAre("worker-0"));
  nodes.KeepStart(node, StartNumber(0));
  nodes.KeepStart(node, StartNumber(2));
  EXPECT_EQ(node->record.start, StartNumber(2));
  EXPECT_THAT(Journaled(&nodes), IsEmpty());
}

// From a journal that another version wrote.
TEST(NodeTableTest, ARoleThatIsNotKnownIsNoneOfThemAndIsKept) {
  NodeRecord record = Server("ps-0", 3);
  record.role = "observer";
  for (const std::string_view word : WordsOf(NodeRole())) {
    NodeRole role{};
    ASSERT_TRUE(FromWord(word, &role));
    EXPECT_FALSE(record.Is(role)) << word;
  }
  NodeTable nodes({{record.name, record}}, kMany);
  EXPECT_THAT(nodes.Endpoints(), IsEmpty());
  Node* node = nodes.FindOrAdd("ps-0", NodeRole::kServer, LeaseTable());
  nodes.Learn(node, NodeNews::kToldExited);
  std::vector<Mutation> journaled;
  nodes.Collect(&journaled);
  ASSERT_EQ(journaled.size(), 1u);
  EXPECT_EQ(std::get<NodeRecord>(journaled[0]).role, "observer");
}

// Servers hold partitions, and a worker with leases is heard of again; they keep their names.
TEST(NodeTableTest, OnlyAWorkerThatEndedMakesRoom) {
  NodeTable nodes({}, 4);
  LeaseTable leases;
  const auto add = [&](const std::string& name, NodeRole role) {
    return nodes.FindOrAdd(name, role, leases);
  };
  int heard = 0;
  for (const char* name : {"ps-0", "worker-0", "worker-1", "worker-2"}) {
    Node* node = add(name, name[0] == 'p' ? NodeRole::kServer : NodeRole::kWorker);
    node->last_heard = TimePoint(seconds(++heard));
    node->record.state = NodeState::kRunning;
  }
  EXPECT_EQ(add("worker-9", NodeRole::kWorker), nullptr);
  nodes.Find("ps-0")->record.state = NodeState::kExited;
  EXPECT_EQ(add("worker-9", NodeRole::kWorker), nullptr);
  nodes.Find("worker-0")->record.state = NodeState::kExited;
  leases.Add({{}, LeaseToken(MasterIncarnation(1), 1), {"worker-0", 1}, {}, false, {}});
  EXPECT_EQ(add("worker-9", NodeRole::kWorker), nullptr);
  nodes.Find("worker-1")->record.state = NodeState::kLost;
  nodes.Find("worker-2")->record.state = NodeState::kExited;
  nodes.Find("worker-2")->last_heard.reset();  // before this master began
  Journaled(&nodes);
  EXPECT_NE(add("worker-9", NodeRole::kWorker), nullptr);
  EXPECT_EQ(nodes.Find("worker-2"), nullptr);
  EXPECT_THAT(Journaled(&nodes), ElementsAre("-worker-2", "worker-9"));
  EXPECT_NE(add("worker-8", NodeRole::kWorker), nullptr);
  EXPECT_EQ(nodes.Find("worker-1"), nullptr);
}

TEST(NodeTableTest, WorkersAreToldOfServersWhoseProcessIsKnown) {
  NodeTable nodes({{"ps-0", Server("ps-0", 5)},
                   {"ps-1", Server("ps-1", 0)},
                   {"other", Server("other", 6)},
                   {"ps-10", Server("ps-10", 8)},
                   {"ps-2", Server("ps-2", 7)}},
                  kMany);
  nodes.FindOrAdd("ps-3", NodeRole::kWorker, LeaseTable())->record.incarnation = 9;
  EXPECT_THAT(
      nodes.Endpoints(),
      ElementsAre(ServerEndpoint{ServerId(0), ServerIncarnation(5), "ps-0", {{"unix:/ps-0"}}},
                  ServerEndpoint{ServerId(2), ServerIncarnation(7), "ps-2", {{"unix:/ps-2"}}},
                  ServerEndpoint{ServerId(10), ServerIncarnation(8), "ps-10", {{"unix:/ps-10"}}}));
}

TEST(NodeTableTest, ANewRunKnowsNoProcessAndKeepsTheSums) {
  NodeRecord record = Server("ps-0", 5);
  record.told_start = record.start = record.exit_told = StartNumber(4);
  record.pid = 9;
  record.nonce = 8;
  record.superseded_nonces = {7};
  record.last_exit = "SIGKILL";
  record.records_committed = 30;
  record.skipped_before = 1;
  record.skipped_now = 2;
  record.stale_before = 10;
  record.stale_now = 20;
  NodeRecord other = record;
  other.name = "ps-1";
  NodeTable nodes({{"ps-0", record}, {"ps-1", other}}, kMany);
  EXPECT_EQ(nodes.PartsSkipped(), 6u);
  EXPECT_EQ(nodes.PartsStale(), 60u);
  EXPECT_THAT(Journaled(&nodes), IsEmpty());
  nodes.BeginRun();
  EXPECT_THAT(Journaled(&nodes), SizeIs(2));
  const NodeRecord& after = nodes.Find("ps-0")->record;
  EXPECT_EQ(after.state, NodeState::kExited);
  EXPECT_EQ(after.told_start, StartNumber());
  EXPECT_EQ(after.exit_told, StartNumber());
  EXPECT_EQ(after.start, StartNumber());
  EXPECT_EQ(after.pid, 0u);
  EXPECT_EQ(after.incarnation, 0u);
  EXPECT_EQ(after.nonce, 0u);
  EXPECT_THAT(after.superseded_nonces, IsEmpty());
  EXPECT_THAT(after.lanes, IsEmpty());
  EXPECT_EQ(after.last_exit, "");
  EXPECT_EQ(after.records_committed, 30u);
  EXPECT_THAT(nodes.Endpoints(), IsEmpty());
  EXPECT_EQ(nodes.PartsSkipped(), 6u) << "of the whole job";
  EXPECT_EQ(nodes.PartsStale(), 60u);
  EXPECT_EQ(after.skipped_now, 0u);
  EXPECT_EQ(after.stale_now, 0u);
}

TEST(NodeTableTest, ForgivenTimeEndsNow) {
  NodeTable nodes({}, kMany);
  Node* node = nodes.FindOrAdd("worker-0", NodeRole::kWorker, LeaseTable());
  nodes.FindOrAdd("worker-1", NodeRole::kWorker, LeaseTable());
  node->last_heard = TimePoint(seconds(10));
  node->told_at = TimePoint(seconds(9));
  node->drain.began = TimePoint(seconds(5));
  nodes.Forgive(seconds(3), TimePoint(seconds(100)));
  EXPECT_EQ(node->told_at, TimePoint(seconds(12)));
  EXPECT_EQ(node->last_heard, TimePoint(seconds(13)));
  EXPECT_EQ(node->drain.began, TimePoint(seconds(8)));
  nodes.Forgive(seconds(3), TimePoint(seconds(12)));
  EXPECT_EQ(node->last_heard, TimePoint(seconds(12)));
  EXPECT_EQ(node->drain.began, TimePoint(seconds(11)));
  EXPECT_EQ(nodes.Find("worker-1")->last_heard, std::nullopt) << "it was never heard";
}

}  // namespace
}  // namespace muster
