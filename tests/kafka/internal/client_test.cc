#include "kafka/internal/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "tests/support/status_matchers.h"

namespace muster::kafka::internal {
namespace {

using muster::testing::IsOk;
using muster::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(ClientTest, ErrorsAreSortedByWhatCanBeDoneAboutThem) {
  EXPECT_THAT(ToStatus(RD_KAFKA_RESP_ERR_NO_ERROR, "x"), IsOk());
  EXPECT_THAT(ToStatus(RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART, "topic 't'"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("topic 't': ")));
  EXPECT_EQ(ToStatus(RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, "x").code(),
            absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(ToStatus(RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET, "x").code(),
            absl::StatusCode::kOutOfRange);
  EXPECT_EQ(ToStatus(RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, "x").code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ToStatus(RD_KAFKA_RESP_ERR__BAD_MSG, "x").code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(ToStatus(RD_KAFKA_RESP_ERR__TRANSPORT, "x").code(), absl::StatusCode::kUnavailable);
}

TEST(ClientTest, OurSettingsStandOverTheirsAndTheirsOverDefaults) {
  const ClientConfig config{{"b:1"}, {{"client.id", "theirs"}, {"group.id", "theirs"}}, {}};
  MUSTER_ASSERT_OK_AND_ASSIGN(const ConfRef conf,
                              MakeConf(config, {{"client.id", "default"}}, {{"group.id", "ours"}}));
  const auto value = [&](const char* name) {
    std::array<char, 100> text{};
    size_t bytes = text.size();
    EXPECT_EQ(rd_kafka_conf_get(conf.get(), name, text.data(), &bytes), RD_KAFKA_CONF_OK);
    return std::string(text.data());
  };
  EXPECT_EQ(value("client.id"), "theirs");
  EXPECT_EQ(value("group.id"), "ours");
  EXPECT_EQ(value("bootstrap.servers"), "b:1");
}

}  // namespace
}  // namespace muster::kafka::internal
