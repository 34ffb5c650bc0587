#include "kubernetes/pods/call_threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>

#include "tests/support/gate.h"

namespace muster::kubernetes {
namespace {

TEST(CallThreadsTest, WhatIsSlowHoldsUpNobodyElse) {
  testing::Gate slow;
  testing::Gate done;
  CallThreads threads(2);
  threads.Post([&](const std::stop_token&) { slow.Wait(); });
  threads.Post([&](const std::stop_token&) { done.Open(); });
  done.Wait();
  slow.Open();
}

TEST(CallThreadsTest, TheEndWaitsForWhatHasBegunOnly) {
  testing::Gate begun;
  std::atomic<int> count = 0;
  {
    CallThreads threads(1);
    threads.Post([&](const std::stop_token&) {
      begun.Open();
      ++count;
    });
    begun.Wait();
  }
  EXPECT_EQ(count, 1);
}

TEST(CallThreadsTest, TheEndAsksWhatHasBegunToStop) {
  testing::Gate begun;
  testing::Gate stopped;
  CallThreads threads(1);
  threads.Post([&](const std::stop_token& stop) {
    const std::stop_callback on_stop(stop, [&] { stopped.Open(); });
    begun.Open();
    stopped.Wait();  // for ever, if nobody asks
  });
  begun.Wait();
}

}  // namespace
}  // namespace muster::kubernetes
