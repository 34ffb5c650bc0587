#include "scaler/model/model_json.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <type_traits>

#include "tests/scaler/rest/fake_job_api.h"
#include "tests/scaler/rest/schema_check.h"
#include "tests/support/status_matchers.h"

namespace muster::scaler::rest {
namespace {

using testing::FakeJobApi;
using testing::SchemaCheck;

TEST(ModelJsonTest, EveryDocumentIsAsItsSchemaSays) {
  FakeJobApi job;
  job.AddEvent();
  const SchemaCheck check(ModelSchemas());
  const auto fits = [&check](const nlohmann::json& document, const std::string& name) {
    return check.Check(document, {{"$ref", "#/components/schemas/" + name}});
  };
  EXPECT_EQ(fits(ToJson(job.GetJob().value()), "Job"), "");
  EXPECT_EQ(fits(ToJson(job.Datasets().value()), "DatasetList"), "");
  EXPECT_EQ(fits(ToJson(job.Shards({}).value()), "ShardPage"), "");
  EXPECT_EQ(fits(ToJson(job.MapOfShards(0, 1).value()), "ShardMap"), "");
  EXPECT_EQ(fits(ToJson(job.Nodes().value()), "NodeList"), "");
  EXPECT_EQ(fits(ToJson(job.GetNode("ps-0").value()), "Node"), "");
  EXPECT_EQ(fits(ToJson(job.Logs("ps-0", {}).value()), "LogChunk"), "");
  EXPECT_EQ(fits(ToJson(job.Partitions(0, 10).value()), "PartitionPage"), "");
  EXPECT_EQ(fits(ToJson(job.Events(0, 10).value()), "EventList"), "");
  EXPECT_EQ(fits(ToJson(job.Explain(1).value()), "Explanation"), "");
  EXPECT_EQ(fits(ToJson(job.GetSamples({}).value()), "Samples"), "");
  EXPECT_EQ(fits(ToJson(job.Policies().value()), "PolicyList"), "");
  EXPECT_EQ(fits(ToJson(Status{job.GetJob().value(), job.Nodes()->nodes}), "Status"), "");

  nlohmann::json wrong = ToJson(job.GetJob().value());
  wrong["state"] = "sleeping";
  EXPECT_NE(fits(wrong, "Job"), "");
  wrong = ToJson(job.GetJob().value());
  wrong.erase("progress");
  EXPECT_NE(fits(wrong, "Job"), "");
}

TEST(ModelJsonTest, NumbersThatAreNotDefinedAreNullAndBytesAreWhole) {
  Event event;
  event.before = {{"memory_bytes", 268435456.0}, {"cpus", 0.5}};
  event.evidence = {{"slope", std::numeric_limits<double>::infinity(), "bytes/s", 30}};
  const nlohmann::json json = ToJson(event);
  EXPECT_EQ(json["before"].dump(), R"({"cpus":0.5,"memory_bytes":268435456})");
  EXPECT_TRUE(json["evidence"][0]["value"].is_null());
  EXPECT_TRUE(ToJson(Job{})["progress"]["remaining_seconds"].is_null());
}

TEST(ModelJsonTest, WhatIsReadBackIsTheSameDocument) {
  FakeJobApi job;
  job.AddEvent();
  const auto again = [](const auto& value) {
    using T = std::remove_cvref_t<decltype(value)>;
    const absl::StatusOr<T> read = FromJson<T>(ToJson(value));
    EXPECT_THAT(read, muster::testing::IsOk());
    EXPECT_EQ(read.ok() ? ToJson(*read) : nullptr, ToJson(value));
  };
  again(job.GetJob().value());
  again(job.Nodes().value());
  again(job.GetNode("worker-0").value());
  again(job.Events(0, 10).value());
  again(job.Policies().value());
  Explanation explanation = job.Explain(1).value();
  again(explanation);
  explanation.cause = explanation.event;
  explanation.effects = {explanation.event, {.kind = "outcome", .verdict = "helped"}};
  explanation.event.evidence[0].value = std::numeric_limits<double>::quiet_NaN();
  again(explanation);
}

TEST(ModelJsonTest, AbsentAndUnknownFieldsAreNoErrorAndOtherTypesAre) {
  const auto read = [](const char* text) { return FromJson<Event>(nlohmann::json::parse(text)); };
  MUSTER_ASSERT_OK_AND_ASSIGN(const Event event,
                              read(R"({"id": 7, "colour": "red", "kind": "a-new-one"})"));
  EXPECT_EQ(event.id, 7u);
  EXPECT_EQ(event.kind, "a-new-one");
  EXPECT_EQ(event.because, "");
  const auto refused = [&read](const char* text, const char* why) {
    EXPECT_THAT(read(text), muster::testing::StatusIs(absl::StatusCode::kInvalidArgument,
                                                      ::testing::HasSubstr(why)))
        << text;
  };
  refused("[]", "Event must be an object, not of type array");
  refused(R"({"id": -1})", "Event.id must be a whole number from 0");
  refused(R"({"id": 1.5})", "Event.id");
  refused(R"({"because": 3})", "Event.because must be a text, not of type number");
  refused(R"({"before": {"cpus": "2"}})", "Event.before.cpus must be a number or null");
  refused(R"({"evidence": {}})", "Event.evidence must be an array");
  refused(R"({"evidence": [{"unit": 1}]})", "Event.evidence[].unit");
  refused(R"({"dry_run": 1})", "Event.dry_run");
}

TEST(ModelJsonTest, TextThatIsNoUtf8IsMended) {
  Job job;
  job.reason =
      "a\xff"
      "b";
  EXPECT_THAT(Dump(ToJson(job)), ::testing::HasSubstr("a\xef\xbf\xbd"
                                                      "b"));
}

}  // namespace
}  // namespace muster::scaler::rest
