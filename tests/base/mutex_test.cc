#include "base/mutex.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace muster {
namespace {

struct Counter {
  Mutex mutex;
  CondVar changed;
  int value MUSTER_GUARDED_BY(mutex) = 0;
};

TEST(MutexTest, IncrementsOfManyThreadsAllCountAndWaitersSeeThem) {
  Counter counter;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&counter] {
      for (int i = 0; i < 1000; ++i) {
        MutexLock lock(&counter.mutex);
        ++counter.value;
        counter.changed.SignalAll();
      }
    });
  }
  {
    MutexLock lock(&counter.mutex);
    while (counter.value < 4000) counter.changed.Wait(&counter.mutex);
  }
  for (std::thread& thread : threads) thread.join();
  MutexLock lock(&counter.mutex);
  EXPECT_EQ(counter.value, 4000);
}

TEST(MutexTest, WaitForReturnsFalseWithoutASignal) {
  Counter counter;
  MutexLock lock(&counter.mutex);
  EXPECT_FALSE(counter.changed.WaitFor(&counter.mutex, std::chrono::milliseconds(1)));
}

}  // namespace
}  // namespace muster
