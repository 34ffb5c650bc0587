#include "net/spin_budget.h"

#include <gtest/gtest.h>

namespace muster::net {
namespace {

using std::chrono::microseconds;

TEST(SpinBudgetTest, ShortWaitsKeepItAndLongOnesHalveItDownToNothing) {
  SpinBudget spin(microseconds(40));
  spin.Waited(microseconds(40));
  EXPECT_EQ(spin.budget(), microseconds(40));
  spin.Waited(microseconds(41));
  EXPECT_EQ(spin.budget(), microseconds(20));
  for (int i = 0; i < 2; ++i) spin.Waited(std::chrono::hours(1));
  EXPECT_EQ(spin.budget(), microseconds(5));
  spin.Waited(std::chrono::hours(1));
  EXPECT_EQ(spin.budget(), microseconds(0));
  spin.Waited(std::chrono::hours(1));
  EXPECT_EQ(spin.budget(), microseconds(0));
}

TEST(SpinBudgetTest, WaitsThatWouldHaveFittedBringItBack) {
  SpinBudget spin(microseconds(40));
  for (int i = 0; i < 4; ++i) spin.Waited(std::chrono::hours(1));
  spin.Waited(microseconds(30));
  EXPECT_EQ(spin.budget(), microseconds(5));
  for (int i = 0; i < 3; ++i) spin.Waited(microseconds(40));
  EXPECT_EQ(spin.budget(), microseconds(40));
  spin.Waited(microseconds(40));
  EXPECT_EQ(spin.budget(), microseconds(40));
}

TEST(SpinBudgetTest, NoneStaysNone) {
  SpinBudget spin(microseconds(0));
  spin.Waited(microseconds(1));
  spin.Waited(microseconds(0));
  EXPECT_EQ(spin.budget(), microseconds(0));
}

}  // namespace
}  // namespace muster::net
