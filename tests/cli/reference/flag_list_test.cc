#include "cli/reference/man_page.h"

#include <gmock/gmock.h>

#include <map>
#include <set>

#include "cli/verbs/verbs.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST(FlagListTest, FlagsAreGroupedByNameAndMeaning) {
  CLI::App app("Muster: training", "muster");
  bool set = false;
  CLI::App* one = app.add_subcommand("one", "One");
  one->set_help_flag();
  one->add_option("-n,--last", "Only the newest");
  one->add_option("job", "Not a flag");
  one->add_flag("--hidden", set, "Hidden")->group("");
  CLI::App* two = app.add_subcommand("two", "Two");
  two->set_help_flag();
  CLI::App* below = two->add_subcommand("below", "Below");
  below->set_help_flag();
  two->add_option("--last", "Only the newest");
  below->add_option("--last", "Something else");
  below->add_flag("--all", set, "Everything");
  const std::vector<ListedFlag> flags = FlagsOf(app);
  ASSERT_THAT(flags, SizeIs(2));
  EXPECT_EQ(flags[0].flag, "--all");
  EXPECT_THAT(flags[1].flag, HasSubstr("-n, --last"));
  ASSERT_THAT(flags[1].meanings, SizeIs(2));
  EXPECT_THAT(flags[1].meanings[0].verbs, ElementsAre("one", "two"));
  EXPECT_THAT(flags[1].meanings[1].verbs, ElementsAre("two below"));
  EXPECT_THAT(FlagsText(flags), AllOf(HasSubstr("--all\n    Everything\n      of: two below\n"),
                                      HasSubstr("    Only the newest\n      of: one, two\n")));
}

/// The options whose meaning depends on the verb. Every other option means the same everywhere.
const std::map<std::string, size_t> kSeveralMeanings = {
    {"--dry-run", 2},    // of a run, and of policies in a simulation
    {"--follow", 3},     // shows, or writes, what comes
    {"--image", 2},      // of `manifests`, and of a run with --on
    {"--job", 2},        // in `simulate` a file, and with --on a name
    {"--name", 2},       // of a node, and of the job of `train`
    {"--namespace", 2},  // of `manifests`, and of a job with --on
    {"--node", 2},       // in `logs` there may be several
    {"--output", 2},     // of `manifests`, and of every other verb
    {"--servers", 2},    // of the job of `train`, and of `verify`
    {"--state-dir", 4},  // of the job, of those of `train` and `predict`, and of `join`
    {"--timeout", 5},    // how long the verb waits; what happens then depends on the verb
    {"--wait", 2},       // for a drain, or for an outcome
    {"--workers", 3},    // of a running job, and of the jobs of `train` and `verify`
};

TEST(FlagListTest, AFlagOfOneNameHasOneMeaning) {
  CLI::App app("Muster: training", "muster");
  Chosen chosen;
  AddVerbs(&app, &chosen);
  std::map<std::string, size_t> several;
  for (const ListedFlag& flag : FlagsOf(app)) {
    for (const FlagMeaning& meaning : flag.meanings) EXPECT_NE(meaning.meaning, "") << flag.flag;
    const std::string name = flag.flag.substr(flag.flag.find("--"));
    if (flag.meanings.size() > 1)
      several[name.substr(0, name.find_first_of(" ,"))] = flag.meanings.size();
  }
  EXPECT_EQ(several, kSeveralMeanings) << FlagsText(FlagsOf(app));
}

TEST(FlagListTest, NoLineIsWiderThanAScreen) {
  CLI::App app("Muster: training", "muster");
  Chosen chosen;
  AddVerbs(&app, &chosen);
  const std::string text = FlagsText(FlagsOf(app));
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin);
    EXPECT_LE(end - begin, 100u) << text.substr(begin, end - begin);
    begin = end + 1;
  }
}

}  // namespace
}  // namespace muster
