#include "job/file/yaml_tree.h"

#include "tests/support/status_matchers.h"

namespace muster::job_file {
namespace {

using ::muster::testing::IsOk;
using ::muster::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

using Kind = YamlNode::Kind;

TEST(YamlTreeTest, KeepsTextQuotesOrderAndPositions) {
  MUSTER_ASSERT_OK_AND_ASSIGN(const YamlNode root,
                              ParseYaml("b: 1\na:\n  - \"1\"\n  - {c: }\n", "job.yaml"));
  ASSERT_EQ(root.kind, Kind::kMap);
  ASSERT_EQ(root.entries.size(), 2u);
  EXPECT_EQ(root.entries[0].key.text, "b");
  EXPECT_EQ(root.entries[0].value.text, "1");
  EXPECT_FALSE(root.entries[0].value.quoted);
  EXPECT_EQ(root.entries[0].value.position.line, 1);
  EXPECT_EQ(root.entries[0].value.position.column, 4);
  const YamlNode& list = root.entries[1].value;
  ASSERT_EQ(list.kind, Kind::kList);
  ASSERT_EQ(list.items.size(), 2u);
  EXPECT_TRUE(list.items[0].quoted);
  EXPECT_EQ(list.items[0].position.line, 3);
  EXPECT_EQ(list.items[0].position.column, 5);
  EXPECT_EQ(list.items[1].entries[0].value.kind, Kind::kNull);
}

TEST(YamlTreeTest, AnEmptyFileIsNothing) {
  for (const char* text : {"", "\n", "# comment\n", "---\n"}) {
    MUSTER_ASSERT_OK_AND_ASSIGN(const YamlNode root, ParseYaml(text, "job.yaml"));
    EXPECT_EQ(root.kind, Kind::kNull) << text;
  }
}

TEST(YamlTreeTest, ErrorsNameFileLineAndColumn) {
  const std::pair<std::string, std::string> cases[] = {
      {"a: [1, 2", "not valid YAML"},
      {"a: 1\n\tb: 2\n", "not valid YAML"},
      {"a: &x 1\nb: *x\n", "job.yaml:1:4: anchors"},
      {"a: *x\n", "job.yaml:1:"},
      {"a: !!int 1\n", "job.yaml:1:4: the tag"},
      {"? [a]\n: b\n", "a key must be a name"},
      {"a: 1\n---\nb: 2\n", "job.yaml:3:1: a second document"},
      {std::string("a:\nb: \0c", 8), "job.yaml:2:1: the line contains a zero byte"},
  };
  for (const auto& [text, what] : cases) {
    EXPECT_THAT(ParseYaml(text, "job.yaml"),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("job.yaml:"), HasSubstr(what))))
        << text;
  }
}

TEST(YamlTreeTest, DepthIsBounded) {
  const auto nested = [](int depth) {
    return std::string(depth, '[') + "1" + std::string(depth, ']');
  };
  EXPECT_THAT(ParseYaml(nested(kYamlDepthMax), "job.yaml"), IsOk());
  EXPECT_THAT(ParseYaml(nested(kYamlDepthMax + 1), "job.yaml"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("deeper than 24")));
  EXPECT_FALSE(ParseYaml(nested(100'000), "job.yaml").ok());
}

}  // namespace
}  // namespace muster::job_file
