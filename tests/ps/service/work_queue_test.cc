#include "ps/service/work_queue.h"

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
