#include "cli/reference/completion_script.h"

#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "cli/verbs/verbs.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster {
namespace {

using muster::testing::IsOk;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class CompletionScriptTest : public ::testing::Test {
 protected:
  CompletionScriptTest() { AddVerbs(&app_, &chosen_); }

  /// The completions of bash for this line, whose last word is incomplete.
  std::string Offered(const std::string& words) {
    const std::string script = folder_.path() + "/muster.bash";
    EXPECT_THAT(WriteFileAtomically(script, CompletionScript(app_, "bash")), IsOk());
    const std::string line = "bash -c 'source " + script + "; COMP_WORDS=(muster " + words +
                             "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _muster; " +
                             "echo ${COMPREPLY[*]}'";
    FILE* const shell = ::popen(line.c_str(), "r");
    std::string offered;
    for (int c = std::fgetc(shell); c != EOF; c = std::fgetc(shell)) {
      offered += static_cast<char>(c);
    }
    EXPECT_EQ(::pclose(shell), 0);
    return offered;
  }

  CLI::App app_;
  Chosen chosen_;
  testing::TempDir folder_;
};

TEST_F(CompletionScriptTest, BashCompletesVerbs) {
  EXPECT_EQ(Offered("stat"), "status\n");
  EXPECT_THAT(Offered("s"),
              AllOf(HasSubstr("shards"), HasSubstr("scale"), Not(HasSubstr("scaler"))));
}

TEST_F(CompletionScriptTest, BashCompletesOptionsAndTheirValues) {
  EXPECT_EQ(Offered("scale --work"), "--workers\n");
  EXPECT_EQ(Offered("status --output j"), "json\n");
  EXPECT_EQ(Offered("help sim"), "simulate\n");
}

TEST_F(CompletionScriptTest, FileNamesAreLeftToBash) {
  EXPECT_EQ(Offered("run job.y"), "\n");
  EXPECT_THAT(CompletionScript(app_, "bash"), HasSubstr("complete -o default"));
}

TEST_F(CompletionScriptTest, TheOtherShellsGetTheSameVerbs) {
  EXPECT_THAT(CompletionScript(app_, "zsh"), AllOf(StartsWith("#compdef muster\n"),
                                                   HasSubstr("bashcompinit"), HasSubstr("status")));
  EXPECT_THAT(CompletionScript(app_, "fish"),
              AllOf(HasSubstr("-a status"), HasSubstr("from status' -l output -s o"),
                    HasSubstr("job'\\''s"), Not(HasSubstr("-a ps "))));
}

}  // namespace
}  // namespace muster
