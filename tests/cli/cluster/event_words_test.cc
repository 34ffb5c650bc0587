#include "cli/cluster/event_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kubernetes/model/timestamp.h"

namespace muster::cluster {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

json EventOf(const std::string& type, const std::string& time, const std::string& message,
             const std::string& uid = "u") {
  return {{"type", type},
          {"lastTimestamp", time},
          {"message", message},
          {"involvedObject", {{"uid", uid}}}};
}

TEST(EventWords, TheNewestWarningOfTheObject) {
  EXPECT_EQ(NewestWarning({}, "u"), "");
  EXPECT_EQ(NewestWarning({EventOf("Warning", "2026-01-01T00:00:02Z", "second"),
                           EventOf("Warning", "2026-01-01T00:00:01Z", "first"),
                           EventOf("Warning", "2026-01-01T00:00:03Z", "of another pod", "v")},
                          "u"),
            "second");
  // Volumes were mounted at last, and the image takes its time.
  json pulling = EventOf("Normal", "2026-01-01T00:00:02Z", "Pulling image");
  const json warning = EventOf("Warning", "2026-01-01T00:00:01Z", "no such volume");
  EXPECT_EQ(NewestWarning({warning, pulling}, "u"), "no such volume");
  pulling["reason"] = "Pulling";
  EXPECT_EQ(NewestWarning({warning, pulling}, "u"), "");
}

TEST(EventWords, TimesAreWhereTheReporterPutsThem) {
  EXPECT_EQ(TimeOf({{"lastTimestamp", nullptr}, {"eventTime", "2026-01-01T00:00:01.5Z"}}),
            "2026-01-01T00:00:01.5Z");
  EXPECT_EQ(TimeOf({{"metadata", {{"creationTimestamp", "2026-01-01T00:00:01Z"}}}}),
            "2026-01-01T00:00:01Z");
}

TEST(EventWords, WhatMusterMakesIsPutBack) {
  const std::string account =
      "error looking up service account team/ads-muster: serviceaccount \"ads-muster\" not found";
  EXPECT_THAT(WithAdvice(account, "ads"), AllOf(HasSubstr(account), HasSubstr("puts back")));
  EXPECT_THAT(WithAdvice("MountVolume.SetUp failed: configmap \"ads-muster\" not found", "ads"),
              HasSubstr("puts back"));
  const std::string theirs = "MountVolume.SetUp failed: secret \"passwords\" not found";
  EXPECT_EQ(WithAdvice(theirs, "ads"), theirs);
}

TEST(EventWords, APodThatStartsForLong) {
  json pod = {{"metadata", {{"creationTimestamp", "2026-01-01T00:00:00Z"}}},
              {"spec", {{"containers", json::array({{{"name", "muster"}}})}, {"nodeName", "n1"}}},
              {"status",
               {{"phase", "Pending"},
                {"conditions", json::array({{{"type", "PodScheduled"},
                                             {"status", "True"},
                                             {"lastTransitionTime", "2026-01-01T01:00:00Z"}}})},
                {"containerStatuses",
                 json::array({{{"name", "muster"},
                               {"state", {{"waiting", {{"reason", "ContainerCreating"}}}}}}})}}}};
  const WallTime scheduled = *kubernetes::ParseTimestamp("2026-01-01T01:00:00Z");
  using std::chrono::seconds;
  EXPECT_FALSE(StartsFor(pod, scheduled + seconds(9), seconds(10)));
  EXPECT_TRUE(StartsFor(pod, scheduled + seconds(10), seconds(10)));
  pod["metadata"]["deletionTimestamp"] = "2026-01-01T01:00:05Z";
  EXPECT_FALSE(StartsFor(pod, scheduled + seconds(10), seconds(10)));
}

}  // namespace
}  // namespace muster::cluster
