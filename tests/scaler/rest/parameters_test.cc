#include "scaler/rest/parameters.h"

#include <gmock/gmock.h>

namespace muster::scaler::rest {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

const std::vector<Param> kQueryParams = {
    {.name = "limit", .kind = ParamKind::kInteger, .min = 1, .max = 1000, .absent = 100},
    {.name = "state", .kind = ParamKind::kChoice, .choices = {"done", "failed"}},
    {.name = "topics", .kind = ParamKind::kChoices, .choices = {"events", "status"}},
    {.name = "node", .kind = ParamKind::kName},
    {.name = "text", .kind = ParamKind::kText, .min = 1, .max = 3}};

/// The arguments, or the detail of the problem.
std::string TakeQueryOf(const std::string& target, Arguments* arguments) {
  const auto parsed = ParseTarget(target);
  if (const auto* problem = std::get_if<Problem>(&parsed)) return problem->detail;
  const auto problem = TakeQuery(kQueryParams, std::get<Target>(parsed), arguments);
  return problem ? problem->detail : "";
}

TEST(ParametersTest, TargetsAreTakenApartAndDecoded) {
  const auto target = std::get<Target>(ParseTarget("/api/v1/a%20b/?x=1+2&y=%3d&z&&"));
  EXPECT_THAT(target.segments, ElementsAre("api", "v1", "a b"));
  EXPECT_THAT(target.query, ElementsAre(Pair("x", "1 2"), Pair("y", "="), Pair("z", "")));
  EXPECT_TRUE(std::get<Target>(ParseTarget("/")).segments.empty());
  EXPECT_THAT(std::get<Target>(ParseTarget("/a//b")).segments, ElementsAre("a", "", "b"));
  for (const std::string wrong :
       {"", "a", "http://localhost/a", "*", "/%", "/%1", "/%zz", "/a?%", "/a?b=%g0"}) {
    const auto parsed = ParseTarget(wrong);
    ASSERT_TRUE(std::holds_alternative<Problem>(parsed)) << wrong;
    EXPECT_EQ(std::get<Problem>(parsed).status, 400) << wrong;
  }
}

TEST(ParametersTest, GoodQueriesAreTaken) {
  Arguments arguments;
  EXPECT_EQ(
      TakeQueryOf("/?limit=1000&state=done&topics=status,events&node=ps-0&text=äöü", &arguments),
      "");
  EXPECT_EQ(arguments.Integer("limit"), 1000u);
  EXPECT_EQ(arguments.Text("state"), "done");
  EXPECT_THAT(arguments.Texts("topics"), ElementsAre("status", "events"));
  EXPECT_EQ(arguments.Text("node"), "ps-0");
  EXPECT_EQ(arguments.Text("text"), "äöü");  // characters, not bytes

  Arguments absent;
  EXPECT_EQ(TakeQueryOf("/", &absent), "");
  EXPECT_EQ(absent.Integer("limit"), 100u);
  EXPECT_FALSE(absent.Has("state"));
}

TEST(ParametersTest, WrongQueriesSayWhichFieldAndBound) {
  for (const auto& [query, text] : std::vector<std::pair<std::string, std::string>>{
           {"limit=0", "limit (query): '0' is no whole number from 1 to 1000"},
           {"limit=1001", "from 1 to 1000"},
           {"limit=18446744073709551616", "from 1 to 1000"},
           {"limit=", "''"},
           {"limit=+1", "' 1'"},
           {"limit=-1", "'-1'"},
           {"limit=1.0", "'1.0'"},
           {"limit=1&limit=2", "limit (query): is there twice"},
           {"state=todo", "'todo' is none of done, failed"},
           {"topics=", "'' is none of"},
           {"topics=events,events", "twice"},
           {"topics=events,x", "'x' is none of events, status"},
           {"node=PS-0", "'PS-0' is no name"},
           {"node=0ps", "is no name"},
           {"node=" + std::string(64, 'a'), "is no name"},
           {"text=", "has 0 characters, must have from 1 to 3"},
           {"text=abcd", "has 4 characters"},
           {"text=%ff", "is not valid UTF-8"},
           {"other=1", "other (query): is not among the parameters"}}) {
    Arguments arguments;
    EXPECT_THAT(TakeQueryOf("/?" + query, &arguments), HasSubstr(text)) << query;
  }
}

const std::vector<Param> kBodyParams = {
    {.name = "cpus", .in = ParamIn::kBody, .kind = ParamKind::kNumber, .min = 0.5, .max = 8},
    {.name = "bytes", .in = ParamIn::kBody, .kind = ParamKind::kInteger, .min = 10, .max = 1e15},
    {.name = "reason", .in = ParamIn::kBody, .kind = ParamKind::kText, .max = 5},
    {.name = "shards", .in = ParamIn::kBody, .kind = ParamKind::kShardIds, .min = 1, .max = 2},
    {.name = "limit", .in = ParamIn::kQuery, .kind = ParamKind::kInteger, .max = 1}};

TEST(ParametersTest, GoodBodiesAreTaken) {
  Arguments arguments;
  const auto problem =
      TakeBody(kBodyParams, {},
               R"({"cpus": 2, "bytes": 300.0, "reason": "", "shards": ["0/1/22"]})", &arguments);
  EXPECT_FALSE(problem) << problem->detail;
  EXPECT_EQ(arguments.Number("cpus"), 2.0);
  EXPECT_EQ(arguments.Integer("bytes"), 300u);
  EXPECT_THAT(arguments.Texts("shards"), ElementsAre("0/1/22"));
  Arguments none;
  EXPECT_FALSE(TakeBody(kBodyParams, {}, "{}", &none));
}

TEST(ParametersTest, WrongBodiesSayWhichFieldAndBound) {
  for (const auto& [body, status, text] : std::vector<std::tuple<std::string, int, std::string>>{
           {"", 400, "is empty"},
           {"{", 400, "no valid JSON"},
           {"{} x", 400, "no valid JSON"},
           {"[]", 400, "no JSON object"},
           {"null", 400, "no JSON object"},
           {"\"\xff\"", 400, "no valid JSON"},
           {R"({"cpus": 1, "cpus": 2})", 400, "'cpus' twice"},
           {R"({"a": )" + std::string(20, '[') + std::string(20, ']') + "}", 400, "nested"},
           {R"({"cpus": 0.4})", 422, "cpus (body): 0.4 is no number from 0.5 to 8"},
           {R"({"cpus": "1"})", 422, "\"1\" is no number"},
           {R"({"cpus": true})", 422, "true is no number"},
           {R"({"cpus": null})", 422, "null is no number"},
           {R"({"bytes": 10.5})", 422, "10.5 is no whole number"},
           {R"({"bytes": -11})", 422, "no whole number from 10 to"},
           {R"({"bytes": 1e300})", 422, "no whole number"},
           {R"({"reason": 5})", 422, "reason (body): must be a text"},
           {R"({"reason": "123456"})", 422, "has 6 characters"},
           {R"({"shards": []})", 422, "array of from 1 to 2"},
           {R"({"shards": ["0/0/1", "0/0/2", "0/0/3"]})", 422, "array of from 1 to 2"},
           {R"({"shards": ["0/0"]})", 422, "\"0/0\" is no shard id"},
           {R"({"shards": ["0/0/"]})", 422, "is no shard id"},
           {R"({"shards": ["0/0/1/2"]})", 422, "is no shard id"},
           {R"({"shards": ["0/7061098969/1"]})", 422, "is no shard id"},
           {R"({"shards": ["0/0/x"]})", 422, "is no shard id"},
           {R"({"shards": [1]})", 422, "1 is no shard id"},
           {R"({"limit": 1})", 422, "is not among the fields"}}) {
    Arguments arguments;
    const auto problem = TakeBody(kBodyParams, {}, body, &arguments);
    ASSERT_TRUE(problem) << body;
    EXPECT_EQ(problem->status, status) << body;
    EXPECT_THAT(problem->detail, HasSubstr(text)) << body;
  }
}

TEST(ParametersTest, OneOfSeveralFieldsCanBeNeeded) {
  const std::vector<std::string_view> any_of = {"cpus", "bytes"};
  Arguments arguments;
  EXPECT_THAT(TakeBody(kBodyParams, any_of, R"({"reason": "a"})", &arguments)->detail,
              HasSubstr("cpus, bytes (body): at least one"));
  EXPECT_FALSE(TakeBody(kBodyParams, any_of, R"({"bytes": 11})", &arguments));
  EXPECT_EQ(BodySchema(kBodyParams, any_of)["anyOf"].dump(),
            R"([{"required":["cpus"]},{"required":["bytes"]}])");
}

}  // namespace
}  // namespace muster::scaler::rest
