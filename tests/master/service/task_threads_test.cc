#include "master/service/task_threads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <memory>
#include <thread>
#include <vector>

#include "tests/support/gate.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using testing::Gate;

TEST(TaskThreadsTest, OneThreadRunsTasksInTheirOrderAndStopLetsThemEnd) {
  TaskThreads threads({.name = "one"});
  Gate gate;
  std::vector<int> ran;
  threads.Post([&] { gate.Wait(); });
  for (int i = 1; i <= 3; ++i) threads.Post([&ran, i] { ran.push_back(i); });
  gate.Open();
  threads.Stop();
  EXPECT_THAT(ran, ElementsAre(1, 2, 3));
  threads.Stop();
}

TEST(TaskThreadsTest, TasksRunBesideEachOther) {
  TaskThreads threads({.name = "two", .threads = 2});
  // Often, so that the second is posted while the thread that the first has woken does not run yet.
  for (int round = 0; round < 1'000; ++round) {
    Gate first, second;
    std::latch ended(2);
    threads.Post([&] {
      first.Open();
      second.Wait();
      ended.count_down();
    });
    threads.Post([&] {
      first.Wait();
      second.Open();
      ended.count_down();
    });
    ended.wait();
  }
}

TEST(TaskThreadsTest, WhoPostsTooMuchWaits) {
  constexpr int kWaitingMax = 2, kPosts = 10'000;
  TaskThreads threads({.name = "full", .waiting_max = kWaitingMax});
  std::atomic<int> begun = 0;
  for (int posted = 1; posted <= kPosts; ++posted) {
    threads.Post([&] { ++begun; });
    // One more may have been taken, and not begun.
    ASSERT_LE(posted - begun, kWaitingMax + 1);
  }
  threads.Stop();
  EXPECT_EQ(begun, kPosts);
}

TEST(TaskThreadsTest, AfterStopTheCallerRunsItsTask) {
  TaskThreads threads({.name = "none"});
  threads.Stop();
  std::thread::id by;
  threads.Post([&] { by = std::this_thread::get_id(); });
  EXPECT_EQ(by, std::this_thread::get_id());
}

}  // namespace
}  // namespace muster
