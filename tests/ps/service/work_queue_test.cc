#include "ps/service/work_queue.h"

#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <future>
#include <vector>

#include "tests/support/status_matchers.h"

namespace muster::ps {
namespace {

TEST(WorkQueueTest, RunsInOrderOnItsOwnThread) {
  WorkQueue queue("test");
  std::vector<int> order;
  std::promise<std::thread::id> last;
  queue.Post([&] { order.push_back(1); });
  queue.Post([&] { order.push_back(2); });
  queue.Post([&] { last.set_value(std::this_thread::get_id()); });
  EXPECT_TRUE(last.get_future().get() != std::this_thread::get_id());
  EXPECT_THAT(order, ::testing::ElementsAre(1, 2));
}

TEST(WorkQueueTest, LowPriorityIsOfItsThreadAloneAndDoesNotStarve) {
  const auto priority = [](WorkQueue::Priority of) {
    WorkQueue queue("test", of);
    std::promise<std::pair<int, int>> found;
    queue.Post([&] { found.set_value({::getpriority(PRIO_PROCESS, 0), ::sched_getscheduler(0)}); });
    return found.get_future().get();
  };
  const int own = ::getpriority(PRIO_PROCESS, 0);
  EXPECT_EQ(priority(WorkQueue::Priority::kLow), std::pair(std::min(own + 5, 19), SCHED_BATCH));
  EXPECT_EQ(priority(WorkQueue::Priority::kNormal), std::pair(own, ::sched_getscheduler(0)));
  EXPECT_EQ(::getpriority(PRIO_PROCESS, 0), own);
}

TEST(WorkQueueTest, SeveralThreadsRunSeveralTasksAtOnce) {
  WorkQueue queue("test", WorkQueue::Priority::kNormal, 2);
  std::promise<void> other_began;
  std::promise<void> ended;
  queue.Post([&] {
    other_began.get_future().wait();  // with one thread, for ever
    ended.set_value();
  });
  queue.Post([&] { other_began.set_value(); });
  EXPECT_EQ(ended.get_future().wait_for(std::chrono::seconds(60)), std::future_status::ready);
}

TEST(WorkQueueTest, StopLetsTheTaskUnderWayEnd) {
  WorkQueue queue("test");
  std::promise<void> begun;
  std::promise<void> go_on;
  bool ended = false;
  queue.Post([&] {
    begun.set_value();
    go_on.get_future().wait();
    ended = true;
  });
  begun.get_future().wait();
  std::thread stopper([&] { queue.Stop(); });
  go_on.set_value();
  stopper.join();
  EXPECT_TRUE(ended);
}

TEST(WorkQueueTest, NothingRunsAfterStop) {
  WorkQueue queue("test");
  queue.Stop();
  queue.Post([] { FAIL() << "ran after the end"; });
  queue.Stop();
}

}  // namespace
}  // namespace muster::ps
