#include "cli/reference/named_verb.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/verbs/verbs.h"
#include "tests/support/status_matchers.h"

namespace muster {
namespace {

using muster::testing::IsOk;
using muster::testing::StatusIs;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

class NamedVerbTest : public ::testing::Test {
 protected:
  NamedVerbTest() { AddVerbs(&app_, &chosen_); }

  CLI::App app_;
  Chosen chosen_;
};

TEST_F(NamedVerbTest, ListsThoseForPeople) {
  EXPECT_THAT(ListedVerbs(app_), AllOf(Contains("run"), Contains("help"), Not(Contains("ps"))));
}

TEST_F(NamedVerbTest, TakesEveryVerbAndOptions) {
  for (const char* word : {"run", "ps", "master", "help", "--help", "--version", ""}) {
    EXPECT_THAT(CheckVerb(app_, word), IsOk()) << word;
  }
}

TEST_F(NamedVerbTest, NamesTheVerbThatWasMeant) {
  const auto refused = [&](const char* word, const char* meant) {
    EXPECT_THAT(CheckVerb(app_, word),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr(word), HasSubstr(meant), HasSubstr("muster help"))))
        << word;
  };
  refused("statsu", "Did you mean status?");
  refused("evnts", "Did you mean events?");
  refused("get", "Did you mean nodes, ");
  refused("delete", "Did you mean cancel?");
  EXPECT_THAT(CheckVerb(app_, "frobnicate"),
              StatusIs(absl::StatusCode::kInvalidArgument, Not(HasSubstr("Did you mean"))));
}

TEST_F(NamedVerbTest, ARefusedLineIsToldWhereToLook) {
  EXPECT_THAT(UsageMessage("scale", "--workers is required"),
              AllOf(HasSubstr("--workers is required"), HasSubstr("muster scale --help")));
  EXPECT_THAT(UsageMessage("--bogus", "not expected"), HasSubstr("`muster help`"));
  EXPECT_THAT(UsageMessage("ps", "--name is required"), HasSubstr("muster nodes"));
}

}  // namespace
}  // namespace muster
