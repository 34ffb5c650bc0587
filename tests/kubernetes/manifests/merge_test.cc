#include "kubernetes/manifests/merge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace muster::kubernetes {
namespace {

using nlohmann::json;

std::string Merged(const std::string& base, const std::string& fragment) {
  json result = json::parse(base);
  MergePodTemplate(json::parse(fragment), &result);
  return result.dump();
}

TEST(MergeTest, GroupsAreMergedAndNullRemoves) {
  EXPECT_EQ(Merged(R"({"a":{"b":1,"c":2},"d":3})", R"({"a":{"c":null,"e":4},"d":5})"),
            R"({"a":{"b":1,"e":4},"d":5})");
  EXPECT_EQ(Merged(R"({"a":1})", R"({"a":{"b":{"c":1,"d":null}}})"), R"({"a":{"b":{"c":1}}})");
  EXPECT_EQ(Merged(R"({"a":{"b":1}})", R"({"a":7})"), R"({"a":7})");
}

TEST(MergeTest, ContainersAreMergedByName) {
  for (const std::string list : {"containers", "initContainers"}) {
    EXPECT_EQ(Merged("{\"" + list + R"(":[{"name":"muster","image":"a","tty":true}]})",
                     "{\"" + list + R"(":[{"name":"side"},{"name":"muster","image":"b"}]})"),
              "{\"" + list + R"(":[{"image":"b","name":"muster","tty":true},{"name":"side"}]})");
  }
  EXPECT_EQ(Merged(R"({"ports":[{"containerPort":1,"name":"a"}]})",
                   R"({"ports":[{"containerPort":1,"hostPort":2},{"containerPort":3}]})"),
            R"({"ports":[{"containerPort":1,"hostPort":2,"name":"a"},{"containerPort":3}]})");
  EXPECT_EQ(Merged(R"({"topologySpreadConstraints":[{"maxSkew":1,"topologyKey":"a"}]})",
                   R"({"topologySpreadConstraints":[{"maxSkew":2,"topologyKey":"a"}]})"),
            R"({"topologySpreadConstraints":[{"maxSkew":2,"topologyKey":"a"}]})");
}

TEST(MergeTest, EntriesWhosePartsExcludeEachOtherAreReplaced) {
  const struct {
    std::string list, key;
  } cases[] = {{"volumes", "name"},
               {"env", "name"},
               {"imagePullSecrets", "name"},
               {"schedulingGates", "name"},
               {"resourceClaims", "name"},
               {"volumeMounts", "mountPath"},
               {"volumeDevices", "devicePath"},
               {"hostAliases", "ip"}};
  for (const auto& [list, key] : cases) {
    const auto entry = [&key = key](const std::string& name, const std::string& more) {
      return R"({")" + key + R"(":")" + name + R"(",")" + more + R"(":1})";
    };
    const json merged =
        json::parse(Merged("{\"" + list + "\":[" + entry("a", "p") + "," + entry("b", "q") + "]}",
                           "{\"" + list + "\":[" + entry("b", "r") + "," + entry("c", "s") + "]}"));
    const json expected =
        json::parse("[" + entry("a", "p") + "," + entry("b", "r") + "," + entry("c", "s") + "]");
    EXPECT_EQ(merged.at(list), expected) << list;
  }
}

TEST(MergeTest, SomeListsGrowAndOthersAreReplaced) {
  for (const std::string list :
       {"tolerations", "envFrom", "readinessGates", "supplementalGroups"}) {
    EXPECT_EQ(Merged("{\"" + list + "\":[1]}", "{\"" + list + "\":[2]}"),
              "{\"" + list + "\":[1,2]}");
  }
  for (const std::string list : {"command", "drop", "fromTheFuture"}) {
    EXPECT_EQ(Merged("{\"" + list + "\":[1]}", "{\"" + list + "\":[2]}"), "{\"" + list + "\":[2]}");
  }
}

TEST(MergeTest, AListWhereNoneWas) {
  EXPECT_EQ(Merged(R"({})", R"({"tolerations":[1],"volumes":[{"name":"a"}],"x":[2]})"),
            R"({"tolerations":[1],"volumes":[{"name":"a"}],"x":[2]})");
  EXPECT_EQ(Merged(R"({"volumes":[1]})", R"({"volumes":null})"), R"({})");
}

}  // namespace
}  // namespace muster::kubernetes
