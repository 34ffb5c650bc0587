#include "scaler/rest/model_json.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

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
