#include "verify/fault_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace muster::verify {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr RarePaths kAll{1, 1, 1, 1};
constexpr milliseconds kLease{1'000};

std::vector<Fault> FaultsOf(const FaultPlan::Options& options, const RarePaths& taken) {
  FaultPlan plan(options);
  std::vector<Fault> faults;
  while (std::optional<Fault> fault = plan.Next(taken)) faults.push_back(*fault);
  EXPECT_EQ(faults.size(), plan.total());
  return faults;
}

std::map<Role, int> RolesOf(const std::vector<Fault>& faults, Fault::Kind kind) {
  std::map<Role, int> roles;
  for (const Fault& fault : faults) roles[fault.role] += fault.kind == kind ? 1 : 0;
  return roles;
}

TEST(FaultPlanTest, SameSeedSameFaults) {
  const FaultPlan::Options options{.seed = 5, .kills = 20, .pauses = 10, .lease = kLease};
  FaultPlan::Options other = options;
  other.seed = 6;
  EXPECT_EQ(FaultsOf(options, kAll), FaultsOf(options, kAll));
  EXPECT_NE(FaultsOf(options, kAll), FaultsOf(other, kAll));
}

TEST(FaultPlanTest, RolesAreHitAsOften) {
  const std::vector<Fault> faults =
      FaultsOf({.seed = 1, .kills = 41, .pauses = 13, .lease = kLease}, kAll);
  EXPECT_EQ(
      RolesOf(faults, Fault::Kind::kKill),
      (std::map<Role, int>{
          {Role::kWorker, 11}, {Role::kServer, 10}, {Role::kMaster, 10}, {Role::kScaler, 10}}));
  EXPECT_EQ(RolesOf(faults, Fault::Kind::kPause),
            (std::map<Role, int>{
                {Role::kWorker, 3}, {Role::kServer, 3}, {Role::kMaster, 3}, {Role::kScaler, 4}}));
}

TEST(FaultPlanTest, PausesAreLongerThanTheLease) {
  for (const Fault& fault : FaultsOf({.seed = 3, .pauses = 100, .lease = kLease}, kAll)) {
    EXPECT_GT(fault.pause, kLease);
    EXPECT_LE(fault.pause, 2 * kLease);
    EXPECT_GE(fault.wait, milliseconds(200));
    EXPECT_LE(fault.wait, milliseconds(3'000));
  }
}

TEST(FaultPlanTest, RolesThatAreAsked) {
  const std::vector<Fault> faults =
      FaultsOf({.seed = 1,
                .kills = 30,
                .pauses = 6,
                .lease = kLease,
                .roles = {Role::kWorker, Role::kWorker, Role::kMaster},
                .aim = FaultPlan::Options::Aim::kBursts},
               {});
  EXPECT_EQ(RolesOf(faults, Fault::Kind::kKill),
            (std::map<Role, int>{{Role::kWorker, 20}, {Role::kMaster, 10}}));
  EXPECT_EQ(RolesOf(faults, Fault::Kind::kPause),
            (std::map<Role, int>{{Role::kWorker, 4}, {Role::kMaster, 2}}));
}

TEST(FaultPlanTest, KillsComeInBursts) {
  FaultPlan::Options options{.seed = 4, .kills = 100, .pauses = 20, .lease = kLease};
  const auto soon = [](const Fault& fault) { return fault.wait < milliseconds(100); };
  EXPECT_EQ(std::ranges::count_if(FaultsOf(options, kAll), soon), 0);
  options.aim = FaultPlan::Options::Aim::kBursts;
  const std::vector<Fault> faults = FaultsOf(options, {});
  EXPECT_GT(std::ranges::count_if(faults, soon), 20);
  EXPECT_LT(std::ranges::count_if(faults, soon), 80);
  const auto pause = [](const Fault& fault) { return fault.kind == Fault::Kind::kPause; };
  EXPECT_TRUE(std::ranges::none_of(
      faults, [&](const Fault& fault) { return pause(fault) && soon(fault); }));
}

TEST(FaultPlanTest, NothingToDo) {
  EXPECT_THAT(FaultsOf({}, {}), IsEmpty());
}

/// The roles of the second half's kills while these paths were not taken.
std::vector<Role> AimedAt(const RarePaths& taken) {
  const std::vector<Fault> faults = FaultsOf({.seed = 9, .kills = 12}, taken);
  std::vector<Role> roles;
  for (size_t i = 6; i < 10; ++i) roles.push_back(faults[i].role);
  return roles;
}

TEST(FaultPlanTest, SecondHalfAimsAtPathsNotTaken) {
  const Role w = Role::kWorker, s = Role::kServer, m = Role::kMaster;
  EXPECT_THAT(AimedAt({0, 0, 0, 0}), ElementsAre(m, m, m, m));
  EXPECT_THAT(AimedAt({0, 0, 0, 1}), ElementsAre(w, s, w, s));
  EXPECT_THAT(AimedAt({1, 0, 1, 1}), ElementsAre(s, s, s, s));
  EXPECT_THAT(AimedAt({1, 1, 0, 1}), ElementsAre(s, s, s, s));
  const std::vector<Fault> pair = FaultsOf({.seed = 9, .kills = 12}, {0, 1, 1, 1});
  EXPECT_LT(pair[7].wait, milliseconds(100)) << "before the worker's successor takes over";
}

TEST(FaultPlanTest, FirstHalfAndPausesAreLeftAlone) {
  const FaultPlan::Options options{.seed = 2, .kills = 10, .pauses = 10, .lease = kLease};
  const std::vector<Fault> aimed = FaultsOf(options, {});
  const std::vector<Fault> plain = FaultsOf(options, kAll);
  for (size_t i = 0; i < aimed.size(); ++i) {
    EXPECT_EQ(aimed[i].kind, plain[i].kind) << i;
    if (i < 10 || plain[i].kind == Fault::Kind::kPause) {
      EXPECT_EQ(aimed[i].role, plain[i].role) << i;
    }
  }
}

TEST(DoublingsTest, WhoIsAheadOfTheFaultsIsHeldBack) {
  EXPECT_EQ(DoublingsFor(0, 0), 0u);
  EXPECT_EQ(DoublingsFor(0.3, 0.5), 0u);
  EXPECT_EQ(DoublingsFor(0.45, 0.5), 0u);
  EXPECT_EQ(DoublingsFor(0.45, 0.39), 2u);
  EXPECT_EQ(DoublingsFor(0.9, 0.5), 10u);
  EXPECT_EQ(DoublingsFor(1, 0), 22u);
}

TEST(RarePathsTest, NotTaken) {
  EXPECT_THAT(NotTaken({}), ElementsAre("replayed_shards", "reverified_runs", "parts_skipped",
                                        "reasserted_leases"));
  EXPECT_THAT(NotTaken({7, 0, 1, 2}), ElementsAre("reverified_runs"));
  EXPECT_THAT(NotTaken(kAll), IsEmpty());
}

TEST(RarePathsTest, LargerTakesEachCountForItself) {
  const RarePaths larger = Larger({1, 0, 5, 2}, {0, 3, 4, 2});
  EXPECT_EQ(larger.replayed_shards, 1u);
  EXPECT_EQ(larger.reverified_runs, 3u);
  EXPECT_EQ(larger.parts_skipped, 5u);
  EXPECT_EQ(larger.reasserted_leases, 2u);
}

}  // namespace
}  // namespace muster::verify
