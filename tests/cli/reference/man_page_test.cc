#include "cli/reference/man_page.h"

#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/version.h"
#include "cli/reference/named_verb.h"
#include "cli/verbs/verbs.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster {
namespace {

using muster::testing::IsOk;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class ManPageTest : public ::testing::Test {
 protected:
  ManPageTest() : app_("Muster: training", "muster") {
    AddVerbs(&app_, &chosen_);
    pages_ = ManPages(app_);
  }

  CLI::App app_;
  Chosen chosen_;
  std::map<std::string, std::string> pages_;
};

TEST_F(ManPageTest, EveryListedVerbHasOneAndTheMainPageNamesIt) {
  EXPECT_EQ(pages_.size(), ListedVerbs(app_).size() + 1);
  for (const std::string& verb : ListedVerbs(app_)) {
    const std::string what = app_.get_subcommand(verb)->get_description();
    EXPECT_THAT(pages_["muster-" + verb + ".1"], HasSubstr("muster\\-" + verb + " \\- ")) << verb;
    EXPECT_THAT(pages_["muster.1"], HasSubstr("\\fB" + verb + "\\fR\n")) << what;
  }
  EXPECT_THAT(pages_["muster.1"], AllOf(HasSubstr(kVersion), HasSubstr("muster \\- training"),
                                        Not(HasSubstr("muster\\-ps"))));
}

TEST_F(ManPageTest, APageHasWhatHelpHas) {
  EXPECT_THAT(
      pages_["muster-restart.1"],
      AllOf(HasSubstr("\\fBmuster restart\\fR [\\fIoption\\fR]... [\\fInode\\fR] [\\fIjob\\fR]\n"),
            HasSubstr(".TP\n\\fB\\-\\-reason\\fR TEXT\nWhy; the event records it"),
            HasSubstr(".TP\n\\fB\\-\\-wait\\fR, \\fB\\-\\-no\\-wait\\fR\nWait until"),
            HasSubstr(".SH EXAMPLES\n.nf\nmuster restart job.yaml worker\\-1")));
  EXPECT_THAT(pages_["muster-policies.1"],
              AllOf(HasSubstr("\\fBmuster policies pause\\fR [\\fIoption\\fR]... \\fIpolicy\\fR"),
                    HasSubstr(".SS policies pause\n")));
  EXPECT_THAT(pages_["muster-run.1"],
              AllOf(HasSubstr(".fi\n.PP\nCtrl"), HasSubstr("\nExit codes: 0 succeeded")));
  EXPECT_THAT(pages_["muster-verify.1"], Not(HasSubstr("planted"))) << "it is hidden";
}

TEST_F(ManPageTest, TextThatLooksLikeAnOrderOfRoffStaysText) {
  CLI::App app("Muster: training", "muster");
  app.add_subcommand("dots", ".so /etc/passwd")->add_option("--back", "C:\\n");
  std::map<std::string, std::string> pages = ManPages(app);
  EXPECT_THAT(pages["muster-dots.1"], HasSubstr("\nC:\\en\n"));
  EXPECT_THAT(pages["muster.1"], AllOf(HasSubstr("\n\\&.so /etc"), Not(HasSubstr("\n.so"))));
}

TEST_F(ManPageTest, GroffHasNothingToWarnOf) {
  if (std::system("command -v groff >/dev/null") != 0) GTEST_SKIP() << "groff is not installed";
  const testing::TempDir folder;
  for (const auto& [name, page] : pages_) {
    ASSERT_THAT(WriteFileAtomically(folder.File(name), page), IsOk());
    const std::string check = "groff -man -ww -z '" + folder.File(name) + "' > '" +
                              folder.File("said") + "' 2>&1; test ! -s '" + folder.File("said") +
                              "' || { cat '" + folder.File("said") + "'; exit 1; }";
    EXPECT_EQ(std::system(check.c_str()), 0) << name;
  }
}

}  // namespace
}  // namespace muster
