#include "cli/cluster/object_keeper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/cluster/fake_cluster.h"

namespace muster::cluster {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

json Object(const std::string& kind, const std::string& name) {
  return {{"apiVersion", "v1"}, {"kind", kind}, {"metadata", {{"name", name}}}};
}

std::vector<json> ObjectsOfAds() {
  return {Object("ConfigMap", "ads-muster"), Object("PersistentVolumeClaim", "ads-state"),
          Object("Service", "ads-master"), Object("Job", "ads")};
}

json Secret() {
  json secret = Object("Secret", "ads-muster");
  secret["metadata"]["uid"] = "before";
  secret["metadata"]["resourceVersion"] = "7";
  secret["metadata"]["labels"] = {{"muster/job", "ads"}};
  secret["data"] = {{"token", "dG9rZW4="}};
  return secret;
}

struct Keeper : ::testing::Test {
  Keeper() {
    fake.Put("secrets/ads-muster", Secret());
    for (const json& object : ObjectsOfAds()) {
      if (object["kind"] == "Service") fake.Put("services/ads-master", object);
      if (object["kind"] == "ConfigMap") fake.Put("configmaps/ads-muster", object);
    }
  }
  FakeCluster fake;
};

TEST_F(Keeper, WhatIsThereStays) {
  ObjectKeeper keeper(fake.cluster(), "ads", ObjectsOfAds());
  keeper.PutBack();
  EXPECT_THAT(fake.changes(), IsEmpty());
  EXPECT_THAT(keeper.TakeNotes(), IsEmpty());
}

TEST_F(Keeper, WhatWasDeletedIsMadeAgain) {
  ObjectKeeper keeper(fake.cluster(), "ads", ObjectsOfAds());
  fake.Put("services/ads-master", json());
  fake.Put("secrets/ads-muster", json());
  keeper.OnLook({.stage = JobStage::kRunning});
  EXPECT_THAT(fake.changes(), ElementsAre("PATCH services/ads-master", "POST secrets/ads-muster"));
  EXPECT_THAT(keeper.TakeNotes(), ElementsAre(HasSubstr("the Service ads-master was not there"),
                                              HasSubstr("the Secret ads-muster was not there")));
  const json secret = fake.At("secrets/ads-muster");
  EXPECT_EQ(secret["data"], Secret()["data"]);
  EXPECT_EQ(secret["metadata"]["labels"], Secret()["metadata"]["labels"]);
  EXPECT_FALSE(secret["metadata"].contains("resourceVersion"));
}

TEST_F(Keeper, AConfigMapOfAnotherFileIsPutBack) {
  std::vector<json> objects = ObjectsOfAds();
  objects[0]["data"] = {{"digest", "ours"}};
  json other = objects[0];
  other["data"]["digest"] = "theirs";
  fake.Put("configmaps/ads-muster", other);
  ObjectKeeper keeper(fake.cluster(), "ads", objects);
  keeper.PutBack();
  EXPECT_EQ(fake.At("configmaps/ads-muster")["data"], objects[0]["data"]);
  EXPECT_THAT(keeper.TakeNotes(), ElementsAre(HasSubstr("of another job file")));
}

TEST_F(Keeper, NothingIsMadeForAJobThatDoesNotLive) {
  ObjectKeeper keeper(fake.cluster(), "ads", ObjectsOfAds());
  fake.Put("services/ads-master", json());
  keeper.OnLook({.stage = JobStage::kEnded});
  keeper.OnLook({.stage = JobStage::kDeleted});
  EXPECT_THAT(fake.changes(), IsEmpty());
}

TEST_F(Keeper, ASecretThatWasNeverSeenIsNotInvented) {
  fake.Put("secrets/ads-muster", json());
  ObjectKeeper keeper(fake.cluster(), "ads", ObjectsOfAds());
  keeper.PutBack();
  EXPECT_THAT(fake.changes(), IsEmpty());
}

TEST_F(Keeper, AnApiServerThatIsAwaySaysNothing) {
  ObjectKeeper keeper(fake.cluster(), "ads", ObjectsOfAds());
  fake.Put("services/ads-master", json());
  fake.FailNext("configmaps/ads-muster", 1'000);
  keeper.PutBack();
  EXPECT_THAT(fake.changes(), IsEmpty());
}

TEST_F(Keeper, APodThatDoesNotStartIsSaidOnce) {
  fake.Put("pods/ads-worker-0-1",
           {{"metadata",
             {{"name", "ads-worker-0-1"},
              {"uid", "p"},
              {"creationTimestamp", "2026-01-01T00:00:00Z"},
              {"labels", {{"muster/job", "ads"}, {"muster/node", "worker-0"}}}}},
            {"spec", {{"containers", json::array({{{"name", "muster"}}})}, {"nodeName", "n1"}}},
            {"status", {{"phase", "Pending"}}}});
  fake.Put("events/e", {{"type", "Warning"},
                        {"lastTimestamp", "2026-01-01T00:00:01Z"},
                        {"message", "MountVolume.SetUp failed: secret \"passwords\" not found"},
                        {"involvedObject", {{"uid", "p"}}}});
  ObjectKeeper keeper(fake.cluster(), "ads", ObjectsOfAds());
  keeper.OnLook({.stage = JobStage::kRunning});
  EXPECT_THAT(keeper.TakeNotes(),
              ElementsAre(HasSubstr("ads-worker-0-1 of worker-0 does not start: MountVolume")));
}

TEST(ObjectKeeper, AsNewKeepsWhatItsMakerSaid) {
  json object = Secret();
  object["status"] = {{"x", 1}};
  const json made = AsNew(object);
  EXPECT_EQ(made["metadata"], json({{"name", "ads-muster"}, {"labels", {{"muster/job", "ads"}}}}));
  EXPECT_FALSE(made.contains("status"));
}

}  // namespace
}  // namespace muster::cluster
