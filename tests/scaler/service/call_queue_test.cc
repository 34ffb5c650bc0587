#include "scaler/service/call_queue.h"

#include <gmock/gmock.h>
#include <poll.h>

#include <atomic>
#include <thread>

#include "tests/support/status_matchers.h"

namespace muster::scaler {
namespace {

using muster::testing::IsOk;
using muster::testing::StatusIs;
using std::chrono::milliseconds;
using ::testing::HasSubstr;

constexpr milliseconds kForever{60'000};

void WaitForCall(const CallQueue& queue) {
  pollfd fd{.fd = queue.wake_fd(), .events = POLLIN, .revents = 0};
  ASSERT_EQ(::poll(&fd, 1, kForever.count()), 1);
}

TEST(CallQueueTest, TheOwnerRunsWhatOthersWant) {
  CallQueue queue;
  std::thread::id ran_by;
  std::thread other([&] {
    EXPECT_THAT(queue.Run([&] { ran_by = std::this_thread::get_id(); }, kForever), IsOk());
  });
  WaitForCall(queue);
  queue.RunWaiting();
  other.join();
  EXPECT_EQ(ran_by, std::this_thread::get_id());
}

TEST(CallQueueTest, WhatWasNotBegunInTimeIsNeverRun) {
  CallQueue queue;
  bool ran = false;
  EXPECT_THAT(queue.Run([&] { ran = true; }, milliseconds(1)),
              StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("did nothing")));
  queue.RunWaiting();
  EXPECT_FALSE(ran);
}

TEST(CallQueueTest, WhatHasBegunIsWaitedFor) {
  CallQueue queue;
  std::atomic<bool> over = false;
  std::thread other([&] {
    EXPECT_THAT(queue.Run([&] { over = true; }, milliseconds(1'000)), IsOk());
    EXPECT_TRUE(over);
  });
  WaitForCall(queue);
  queue.RunWaiting();
  other.join();
}

TEST(CallQueueTest, AClosedQueueRefuses) {
  CallQueue queue;
  std::thread other([&] {
    EXPECT_THAT(queue.Run([] { ADD_FAILURE(); }, kForever),
                StatusIs(absl::StatusCode::kUnavailable, HasSubstr("ending")));
  });
  WaitForCall(queue);
  queue.Close();
  other.join();
  EXPECT_THAT(queue.Run([] { ADD_FAILURE(); }, kForever),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("ending")));
  queue.RunWaiting();
}

}  // namespace
}  // namespace muster::scaler
