#include "worker_sdk/net/internal/turns.h"

#include <gtest/gtest.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <string>
#include <thread>
#include <vector>

namespace muster::sdk::net_internal {
namespace {

TEST(TurnsTest, TasksOfManyThreadsRunOneAtATimeAndNoneIsLost) {
  constexpr int kThreads = 4, kEach = 20'000;
  boost::asio::io_context io;
  Turns turns(io.get_executor());
  auto work = boost::asio::make_work_guard(io);
  std::thread home([&] { io.run(); });
  int count = 0;  // of who has the turn
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kEach; ++i) {
        if (i % 3 == 0) {
          while (!turns.TryRun([&] { ++count; })) std::this_thread::yield();
        } else {
          turns.Run([&] { ++count; });
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  work.reset();
  home.join();
  EXPECT_TRUE(turns.TryRun([&] { EXPECT_EQ(count, kThreads * kEach); }));
}

TEST(TurnsTest, ATaskOfTheTurnItselfComesAfterItAndInOrder) {
  boost::asio::io_context io;
  Turns turns(io.get_executor());
  std::string order;
  turns.Run([&] {
    turns.Run([&] {
      turns.Run([&] { order += 'd'; });
      order += 'b';
    });
    turns.Run([&] { order += 'c'; });
    EXPECT_FALSE(turns.TryRun([&] { order += '!'; }));
    order += 'a';
  });
  EXPECT_EQ(order, "abc") << "no more than what came during its own task";
  EXPECT_FALSE(turns.TryRun([] {})) << "the own thread has the turn";
  io.run();
  EXPECT_EQ(order, "abcd");
  EXPECT_TRUE(turns.TryRun([] {}));
}

TEST(TurnsTest, HandlersOfItsExecutorComeInTurn) {
  boost::asio::io_context io;
  Turns turns(io.get_executor());
  const boost::asio::any_io_executor executor = TurnsExecutor(io.get_executor(), &turns);
  boost::asio::steady_timer timer(executor);
  std::string order;
  boost::asio::post(executor, [&] {
    turns.Run([&] { order += 'b'; });
    EXPECT_FALSE(turns.TryRun([] {}));
    order += 'a';
  });
  io.run();
  io.restart();
  timer.expires_after(std::chrono::nanoseconds(1));
  timer.async_wait([&](auto) {
    EXPECT_FALSE(turns.TryRun([] {}));
    order += 'c';
  });
  io.run();
  EXPECT_EQ(order, "abc");
}

}  // namespace
}  // namespace muster::sdk::net_internal
