#include "master/service/snapshot_deletions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/support/gate.h"

namespace muster {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;

/// Only deletes.
class FakeStore final : public ObjectStore {
 public:
  FakeStore() : ObjectStore("fake://store") {}
  absl::StatusOr<LocalFile> Stage(const std::string&) override { return None(); }
  absl::Status Publish(LocalFile, const std::string&) override { return None(); }
  absl::Status PutNew(const std::string&, std::string_view) override { return None(); }
  absl::StatusOr<std::string> Get(const std::string&, uint64_t) override { return None(); }
  absl::StatusOr<LocalFile> Fetch(const std::string&) override { return None(); }
  absl::Status Delete(const std::string&) override { return None(); }
  absl::StatusOr<std::vector<std::string>> List(const std::string&) override { return None(); }
  absl::StatusOr<uint64_t> DeleteUnfinished(const NameFilter&) override { return None(); }
  absl::Status CheckWritable() override { return None(); }

  Undeleted DeleteAll(const std::vector<std::string>& names) override {
    began_.Open();
    gate_.Wait();
    MutexLock lock(&mutex_);
    ++calls_;
    if (away_ > 0) {
      --away_;
      return {names, absl::UnavailableError("away")};
    }
    deleted_.insert(deleted_.end(), names.begin(), names.end());
    changed_.SignalAll();
    return {};
  }

  void WaitUntilDeleted(size_t count) {
    MutexLock lock(&mutex_);
    while (deleted_.size() < count) changed_.Wait(&mutex_);
  }
  std::vector<std::string> deleted() {
    MutexLock lock(&mutex_);
    return deleted_;
  }
  int calls() {
    MutexLock lock(&mutex_);
    return calls_;
  }
  void BeAway(int times) {
    MutexLock lock(&mutex_);
    away_ = times;
  }
  testing::Gate began_, gate_;

 private:
  static absl::Status None() { return absl::UnimplementedError("not in this test"); }

  Mutex mutex_;
  CondVar changed_;
  std::vector<std::string> deleted_ MUSTER_GUARDED_BY(mutex_);
  int calls_ MUSTER_GUARDED_BY(mutex_) = 0;
  int away_ MUSTER_GUARDED_BY(mutex_) = 0;
};

class SnapshotDeletionsTest : public ::testing::Test {
 protected:
  const SystemClock clock_;
  FakeStore store_;
};

TEST_F(SnapshotDeletionsTest, NobodyWaitsForASlowStore) {
  SnapshotDeletions deletions(&store_, &clock_);
  deletions.Delete({"p0/first"});
  store_.began_.Wait();
  // It stands still; before, the owner waited after the eighth batch.
  for (int i = 0; i < 5'000; ++i) deletions.Delete({"p0/" + std::to_string(i)});
  EXPECT_EQ(store_.calls(), 0);
  store_.gate_.Open();
  store_.WaitUntilDeleted(5'001);
  EXPECT_LE(store_.calls(), 7) << "in lists";
}

TEST_F(SnapshotDeletionsTest, TooManyAreForgottenAndNobodyWaits) {
  SnapshotDeletions deletions(&store_, &clock_, {.pending = {.most = 2}});
  deletions.Delete({"p0/first"});
  store_.began_.Wait();
  deletions.Delete({"p0/1", "p0/2", "p0/3"});
  store_.gate_.Open();
  deletions.Stop();
  EXPECT_THAT(store_.deleted(), ElementsAre("p0/first", "p0/1", "p0/2"));
}

TEST_F(SnapshotDeletionsTest, AnAbsentStoreIsTriedAgain) {
  store_.gate_.Open();
  store_.BeAway(2);
  SnapshotDeletions deletions(
      &store_, &clock_,
      {.pending = {.pause_first = milliseconds(1), .pause_max = milliseconds(1)}});
  deletions.Delete({"p0/1"});
  store_.WaitUntilDeleted(1);
  EXPECT_EQ(store_.calls(), 3);
}

TEST_F(SnapshotDeletionsTest, AStoreThatStaysAwayDoesNotHoldUpTheEnd) {
  store_.gate_.Open();
  store_.BeAway(1 << 30);
  SnapshotDeletions deletions(&store_, &clock_, {.stop_after = milliseconds(20)});
  deletions.Delete({"p0/1"});
  deletions.Stop();
  EXPECT_THAT(store_.deleted(), ElementsAre());
}

TEST_F(SnapshotDeletionsTest, TheSweepRunsOnTheThreadAndNothingOutsideIsDeleted) {
  store_.gate_.Open();
  testing::Gate swept;
  SnapshotDeletions deletions(&store_, &clock_);
  deletions.Sweep([&swept] {
    swept.Wait();
    return std::vector<std::string>{"p0/orphan", "../precious"};
  });
  deletions.Delete({"p0/1"});
  swept.Open();
  deletions.Stop();
  EXPECT_THAT(store_.deleted(), ::testing::UnorderedElementsAre("p0/1", "p0/orphan"));
}

TEST_F(SnapshotDeletionsTest, WhatIsReadStaysUntilTheEnd) {
  store_.gate_.Open();
  SnapshotDeletions deletions(&store_, &clock_);
  deletions.Hold({"p0/read"}, std::chrono::hours(1));
  deletions.Delete({"p0/read", "p0/1"});
  store_.WaitUntilDeleted(1);
  EXPECT_THAT(store_.deleted(), ElementsAre("p0/1"));
  deletions.Stop();
  EXPECT_THAT(store_.deleted(), ElementsAre("p0/1", "p0/read"));
}

}  // namespace
}  // namespace muster
