#include "scaler/decision/policy_list.h"

#include <gmock/gmock.h>

#include <map>
#include <string>

namespace muster::scaler {
namespace {

TEST(PolicyListTest, IsOfAllPoliciesInTheirOrder) {
  const auto policies = MakePolicies();
  const std::vector<rest::Policy> described = DescribePolicies({}, {});
  ASSERT_EQ(described.size(), policies.size());
  for (size_t i = 0; i < policies.size(); ++i) {
    EXPECT_EQ(described[i].name, policies[i]->name());
    EXPECT_FALSE(described[i].summary.empty());
    for (const auto& [name, value] : described[i].options) EXPECT_GT(value, 0) << name;
  }
}

TEST(PolicyListTest, ShowsThresholdsAndCooldowns) {
  PolicyOptions options;
  options.hang.silence_min = std::chrono::seconds(42);
  const Arbiter::Options arbiter{.cooldown = std::chrono::seconds(33), .dry_run = true};
  std::map<std::string, rest::Policy> policies;
  for (const rest::Policy& policy : DescribePolicies(options, arbiter)) {
    EXPECT_TRUE(policy.dry_run);
    policies[policy.name] = policy;
  }
  EXPECT_EQ(policies["hang"].options["silence_min_s"], 42);
  EXPECT_EQ(policies["hang"].cooldown_s, 33);
  EXPECT_EQ(policies["predicted-out-of-memory"].cooldown_s, 10);
  EXPECT_EQ(policies["out-of-memory"].cooldown_s, 0) << "repairs do not wait";
}

}  // namespace
}  // namespace muster::scaler
