#include "kubernetes/model/json_access.h"

#include <gtest/gtest.h>

#include "tests/support/status_matchers.h"

namespace muster::kubernetes {
namespace {

using ::testing::_;
using ::testing::HasSubstr;

TEST(JsonAccess, FindsValues) {
  const nlohmann::json object = {{"a", {{"b", "text"}, {"n", 7}, {"l", {1, 2}}}}};
  EXPECT_EQ(TextAt(object, {"a", "b"}), "text");
  EXPECT_EQ(IntegerAt(object, {"a", "n"}, -1), 7);
  EXPECT_EQ(ElementsAt(object, {"a", "l"}).size(), 2u);
}

TEST(JsonAccess, WhatHasAnotherTypeIsAbsent) {
  const nlohmann::json object = {{"a", {{"b", "text"}, {"n", 7}}}, {"list", {1}}};
  EXPECT_EQ(TextAt(object, {"a", "n"}), "");
  EXPECT_EQ(TextAt(object, {"a", "b", "c"}), "");
  EXPECT_EQ(TextAt(object, {"list", "a"}), "");
  EXPECT_EQ(IntegerAt(object, {"a", "b"}, -1), -1);
  EXPECT_TRUE(ElementsAt(object, {"a"}).empty());
  EXPECT_TRUE(ValueAt(nlohmann::json(3), {"a"}).is_null());
}

TEST(JsonAccess, ReadsIdentity) {
  const ObjectIdentity identity =
      IdentityOf({{"metadata", {{"name", "p"}, {"uid", "u"}, {"resourceVersion", "9"}}}});
  EXPECT_EQ(identity.name, "p");
  EXPECT_EQ(identity.uid, "u");
  EXPECT_EQ(identity.resource_version, "9");
  EXPECT_EQ(IdentityOf(nullptr).name, "");
}

TEST(JsonAccess, ConditionsAndContainersAreFoundByName) {
  const nlohmann::json pod = {
      {"spec", {{"containers", {{{"name", "b"}}, {{"name", "a"}}}}}},
      {"status",
       {{"conditions", {{{"type", "Ready"}, {"status", "False"}, {"reason", "why"}}}},
        {"containerStatuses", {{{"name", "a"}, {"n", 1}}, {{"name", "b"}, {"n", 2}}}}}}};
  EXPECT_TRUE(ConditionOf(pod, "Ready").is_null());
  EXPECT_TRUE(ConditionOf(pod, "Other", "False").is_null());
  EXPECT_EQ(TextAt(ConditionOf(pod, "Ready", "False"), {"reason"}), "why");
  EXPECT_EQ(IntegerAt(ContainerStatusOf(pod, "a"), {"n"}, 0), 1);
  EXPECT_EQ(IntegerAt(ContainerStatusOf(pod, ""), {"n"}, 0), 2) << "the first of its spec";
  EXPECT_TRUE(ContainerStatusOf(pod, "c").is_null());
  EXPECT_TRUE(ContainerStatusOf(nlohmann::json(), "").is_null());
}

TEST(JsonAccess, ParsesOrSaysWhatItGot) {
  MUSTER_ASSERT_OK_AND_ASSIGN(const nlohmann::json document, ParseJson(R"({"a":1})"));
  EXPECT_EQ(IntegerAt(document, {"a"}, 0), 1);
  EXPECT_THAT(ParseJson("<html>"),
              testing::StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("<html>")));
  EXPECT_THAT(ParseJson(R"({"a":)"), testing::StatusIs(absl::StatusCode::kInvalidArgument, _));
  EXPECT_EQ(ToText({{"a", "\xff"}}), "{\"a\":\"\xEF\xBF\xBD\"}");
}

TEST(JsonAccess, DepthIsBounded) {
  const auto nested = [](size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_THAT(ParseJson(nested(kJsonDepthMax)), testing::IsOk());
  EXPECT_THAT(ParseJson(nested(kJsonDepthMax + 1)),
              testing::StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("100 deep")));
  EXPECT_THAT(ParseJson("[" + nested(60) + "," + nested(60) + "]"), testing::IsOk());
  // Brackets inside strings do not count.
  EXPECT_THAT(ParseJson("[\"\\\"" + std::string(200, '[') + "\"]"), testing::IsOk());
}

}  // namespace
}  // namespace muster::kubernetes
