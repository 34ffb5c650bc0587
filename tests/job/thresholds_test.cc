#include "job/thresholds.h"

#include <gmock/gmock.h>

#include <set>
#include <string>
#include <utility>

namespace muster {
namespace {

const Threshold& Find(const std::string& policy, const std::string& shown) {
  for (const Threshold& threshold : Thresholds()) {
    if (threshold.policy == policy && threshold.shown == shown) return threshold;
  }
  ADD_FAILURE() << policy << " has no " << shown;
  return Thresholds().front();
}

TEST(ThresholdsTest, EachIsOfAPolicyAndHasItsOwnNamesAndPlace) {
  std::set<std::string_view> policies;
  for (const KnownPolicy& policy : KnownPolicies()) {
    EXPECT_TRUE(policies.insert(policy.name).second) << policy.name;
    EXPECT_FALSE(policy.summary.empty()) << policy.name;
  }
  PolicyOptions options;
  std::set<std::pair<std::string_view, std::string_view>> names;
  std::set<std::string> paths;
  std::set<const void*> places;
  for (const Threshold& threshold : Thresholds()) {
    EXPECT_TRUE(policies.contains(threshold.policy)) << threshold.policy;
    EXPECT_TRUE(names.emplace(threshold.policy, threshold.shown).second) << threshold.shown;
    std::visit([&](auto* value) { EXPECT_TRUE(places.insert(value).second) << threshold.shown; },
               threshold.place(&options));
    const auto& [path, min, max, text] = threshold.file;
    if (path.empty()) continue;
    EXPECT_TRUE(paths.insert(path).second) << path;
    EXPECT_LT(min, max) << path;
    EXPECT_FALSE(text.empty()) << path;
  }
}

TEST(ThresholdsTest, ValuesAreInTheUnitOfTheirNames) {
  PolicyOptions options;
  options.hang.silence_min = std::chrono::minutes(2);
  options.worker_straggler.excess_min = std::chrono::milliseconds(3);
  options.server_straggler.slow_ratio = 2.25;
  options.server_straggler.work_min = 70;
  options.crash_loop.ends_max = 7;
  const auto value = [&options](const std::string& policy, const std::string& shown) {
    return ValueAt(Find(policy, shown).place(&options));
  };
  EXPECT_EQ(value("hang", "silence_min_s"), 120);
  EXPECT_EQ(value("worker-straggler", "excess_min_us"), 3000);
  EXPECT_EQ(value("server-straggler", "slow_ratio"), 2.25);
  EXPECT_EQ(value("server-straggler", "work_min_units"), 70);
  EXPECT_EQ(value("crash-loop", "ends_max"), 7);
}

}  // namespace
}  // namespace muster
