#include "host/exit_status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

namespace muster {
namespace {

using ::testing::HasSubstr;

TEST(ExitStatusTest, NamesAndKinds) {
  struct Case {
    ExitStatus exit;
    const char* name;
    ExitKind kind;
  };
  const Case cases[] = {
      {{.signal = 0, .code = 0}, "exit 0", ExitKind::kClean},
      {{.signal = 0, .code = 3}, "exit 3", ExitKind::kProgram},
      {{.signal = SIGSEGV}, "SIGSEGV", ExitKind::kProgram},
      {{.signal = SIGABRT}, "SIGABRT", ExitKind::kProgram},
      {{.signal = SIGBUS}, "SIGBUS", ExitKind::kProgram},
      {{.signal = SIGILL}, "SIGILL", ExitKind::kProgram},
      {{.signal = SIGFPE}, "SIGFPE", ExitKind::kProgram},
      {{.signal = SIGKILL}, "SIGKILL", ExitKind::kNode},
      {{.signal = SIGTERM}, "SIGTERM", ExitKind::kNode},
      {{.signal = 40}, "signal 40", ExitKind::kNode},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(ToString(c.exit), c.name);
    EXPECT_EQ(Classify(c.exit), c.kind) << c.name;
    EXPECT_FALSE(Explain(c.exit).empty());
  }
}

TEST(ExitStatusTest, ExplainsWhatToDo) {
  EXPECT_THAT(Explain({.signal = SIGKILL}), HasSubstr("memory runs out"));
  EXPECT_THAT(Explain({.signal = SIGSEGV}), HasSubstr("-fsanitize=address"));
  EXPECT_THAT(Explain({.signal = SIGBUS}), HasSubstr("-fsanitize=address"));
  EXPECT_THAT(Explain({.signal = SIGABRT}), HasSubstr("uncaught exception"));
  EXPECT_THAT(Explain({.signal = 0, .code = 127}), HasSubstr("was not found"));
  EXPECT_THAT(Explain({.signal = 0, .code = 126}), HasSubstr("could not be executed"));
  EXPECT_THAT(Explain({.signal = 0, .code = 0}), HasSubstr("until NextShard()"));
  for (const ExitStatus& exit :
       {ExitStatus{.signal = 0, .code = 1}, ExitStatus{.signal = 0, .code = 128},
        ExitStatus{.signal = SIGTERM}}) {
    EXPECT_EQ(Explain(exit), "its last lines should say why") << ToString(exit);
  }
}

TEST(ExitStatusTest, ReadsWhatWaitpidGives) {
  EXPECT_EQ(FromWaitStatus(7 << 8), (ExitStatus{.signal = 0, .code = 7}));
  EXPECT_EQ(FromWaitStatus(SIGKILL), (ExitStatus{.signal = SIGKILL, .code = 0}));
}

}  // namespace
}  // namespace muster
