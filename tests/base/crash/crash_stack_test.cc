#include "base/crash/crash_stack.h"

#include <signal.h>

#include <cstdlib>

#include <gtest/gtest.h>

namespace muster {
namespace {

using ::testing::ExitedWithCode;
using ::testing::KilledBySignal;

// Sanitizers have handlers for the others.
TEST(CrashStackDeathTest, AnAbortPrintsWhereItWas) {
  EXPECT_EXIT(
      {
        PrintStackOfCrash();
        std::abort();
      },
      KilledBySignal(SIGABRT), "crashed with SIGABRT.*newest first:\n(.*\n)*.*base_test\\(");
}

TEST(CrashStackDeathTest, ASignalThatWasSentEndsTheProcessOnce) {
  EXPECT_EXIT(
      {
        PrintStackOfCrash();
        PrintStackOfCrash();
        ::raise(SIGABRT);
      },
      KilledBySignal(SIGABRT), "crashed with SIGABRT");
}

TEST(CrashStackDeathTest, AHandlerOfTheTrainerIsLeftAlone) {
  EXPECT_EXIT(
      {
        ::signal(SIGABRT, [](int /*signal*/) { ::_exit(7); });
        PrintStackOfCrash();
        ::raise(SIGABRT);
      },
      ExitedWithCode(7), "^$");
}

TEST(CrashStackDeathTest, AnIgnoredSignalIsLeftAlone) {
  EXPECT_EXIT(
      {
        ::signal(SIGILL, SIG_IGN);
        PrintStackOfCrash();
        ::raise(SIGILL);
        ::_exit(3);
      },
      ExitedWithCode(3), "^$");
}

}  // namespace
}  // namespace muster
