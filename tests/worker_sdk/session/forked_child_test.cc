#include "worker_sdk/session/forked_child.h"

#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "tests/worker_sdk/session/session_faults.h"

namespace muster {
namespace {

using Code = Status::Code;

class ForkedChildTest : public SessionWithFaultsTest {
 protected:
  /// True if `holds` is true in a forked child, which has a minute. A child that waits for a
  /// lock is killed by the alarm.
  static bool InChild(const std::function<bool()>& holds) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(60);
      ::_exit(holds() ? 0 : 1);
    }
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_FALSE(WIFSIGNALED(status)) << "signal " << WTERMSIG(status);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
};

TEST_F(ForkedChildTest, TheProcessOfTheSessionIsNone) {
  const Session session = Connect();
  EXPECT_FALSE(internal::InForkedChild());
  EXPECT_TRUE(InChild([] { return internal::InForkedChild(); }));
}

TEST_F(ForkedChildTest, EveryCallOfTheSessionFailsAndTheParentGoesOn) {
  AddShard("a");
  master_.EndWhenDone();
  std::optional<Session> session = Connect();
  const Table table = SumTable(*session);
  EXPECT_TRUE(InChild([&] {
    const Status status = session->status();
    const bool says = status.message().find("start processes with exec") != std::string::npos;
    session->Leave();
    const bool fails =
        says && status.code() == Code::kFailedPrecondition && !session->NextShard().has_value() &&
        session->SparseTable({.name = "u", .dim = 3}).width() == 3 &&
        session->DenseTable({.name = "d", .shape = {2, 3}}).size() == 6 && session->Finish() == 1 &&
        Session::Connect(Options()).status().code() == Code::kFailedPrecondition;
    session.reset();
    return fails;
  }));
  Train(*session, table);
  EXPECT_EQ(session->Finish(), 0);
  ExpectRows(1);
}

TEST_F(ForkedChildTest, ALoopHasNoEffectAndTheParentGoesOn) {
  AddShard("a");
  master_.EndWhenDone();
  Session session = Connect();
  const Table table = SumTable(session);
  std::optional<Shard> shard = session.NextShard();
  ASSERT_TRUE(shard.has_value());
  bool forked = false;
  MinibatchRange range = shard->Minibatches();
  for (auto batch = range.begin(); batch != range.end(); ++batch) {
    if (!std::exchange(forked, true)) {
      EXPECT_TRUE(InChild([&] {
        const Rows rows = (*batch).Pull(table, KeysOf(*batch));
        bool zeros = rows.num_keys() == kMinibatch;
        for (const float value : rows.values()) zeros = zeros && value == 0;
        PushOnes(table, *batch);
        (*batch).Metric("loss", 1, 1);
        (*batch).Reject(0, "in the child");
        (*batch).Commit();
        const bool ends = ++batch == range.end();
        shard->Fail("in the child");
        shard.reset();
        return zeros && ends;
      }));
    }
    PushOnes(table, *batch);
  }
  shard.reset();
  EXPECT_FALSE(session.NextShard().has_value());
  EXPECT_EQ(session.Finish(), 0);
  ASSERT_EQ(master_.done.size(), 1u);
  EXPECT_TRUE(master_.done[0].metrics.means.empty());
  EXPECT_EQ(master_.done[0].metrics.rejected_records, 0u);
  ExpectRows(1);
}

}  // namespace
}  // namespace muster
