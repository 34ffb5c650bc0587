#include "cli/steer/screen.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <pty.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/status_matchers.h"

namespace muster::steer {
namespace {

using muster::testing::StatusIs;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::_;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kTaken[] = "\x1b[?1049h";
constexpr char kGivenBack[] = "\x1b[?1049l";

/// A terminal of 50 columns and 10 rows, and its user.
class ScreenTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const winsize size{.ws_row = 10, .ws_col = 50, .ws_xpixel = 0, .ws_ypixel = 0};
    ASSERT_EQ(::openpty(&person_, &terminal_, nullptr, nullptr, &size), 0);
    ASSERT_EQ(::tcgetattr(terminal_, &before_), 0);
    ::fcntl(person_, F_SETFL, O_NONBLOCK);
  }
  void TearDown() override {
    ::close(person_);
    ::close(terminal_);
  }
  std::unique_ptr<Screen> Open(Colour colour = Colour::kOff) {
    auto screen = Screen::Open(terminal_, terminal_, colour);
    EXPECT_THAT(screen, muster::testing::IsOk());
    return *std::move(screen);
  }
  /// The terminal's output so far.
  std::string Seen() {
    std::string seen;
    char bytes[4096];
    for (ssize_t got; (got = ::read(person_, bytes, sizeof(bytes))) > 0;) {
      seen.append(bytes, static_cast<size_t>(got));
    }
    return seen;
  }
  void ExpectRestored() {
    termios now{};
    ASSERT_EQ(::tcgetattr(terminal_, &now), 0);
    EXPECT_EQ(now.c_lflag, before_.c_lflag);
  }

  int person_ = -1;
  int terminal_ = -1;
  termios before_{};
};

TEST_F(ScreenTest, TakesTheScreenAndGivesItBack) {
  {
    const std::unique_ptr<Screen> screen = Open();
    EXPECT_THAT(Seen(), StartsWith(kTaken));
    EXPECT_EQ(screen->size().columns, 50u);
    EXPECT_EQ(screen->size().rows, 10u);
    screen->Draw({{"one", Tone::kBad}, {"two"}});
    EXPECT_THAT(Seen(), AllOf(HasSubstr("one\x1b[K"), HasSubstr("\ntwo\x1b[K")));
    termios now{};
    ASSERT_EQ(::tcgetattr(terminal_, &now), 0);
    EXPECT_EQ(now.c_lflag & ECHO, 0u);
  }
  EXPECT_THAT(Seen(), EndsWith(kGivenBack));
  ExpectRestored();
}

TEST_F(ScreenTest, KeysAndSignalsEndIt) {
  const std::unique_ptr<Screen> screen = Open();
  EXPECT_EQ(screen->AwaitInput(milliseconds(0)), Screen::Input::kNothing);
  ASSERT_EQ(::write(person_, "xyz", 3), 3);
  EXPECT_EQ(screen->AwaitInput(seconds(60)), Screen::Input::kNothing);
  ASSERT_EQ(::write(person_, "q", 1), 1);
  EXPECT_EQ(screen->AwaitInput(seconds(60)), Screen::Input::kQuit);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    ::raise(signal);
    EXPECT_EQ(screen->AwaitInput(seconds(60)), Screen::Input::kQuit) << signal;
  }
  ::raise(SIGWINCH);
  EXPECT_EQ(screen->AwaitInput(seconds(60)), Screen::Input::kRedraw);
  ::close(person_);
  EXPECT_EQ(screen->AwaitInput(seconds(60)), Screen::Input::kQuit) << "the user is gone";
}

TEST_F(ScreenTest, AStoppedOrCrashedProcessLeavesTheTerminalAsItWas) {
  const pid_t child = ::fork();
  if (child == 0) {
    const std::unique_ptr<Screen> screen = Open();
    ::raise(SIGTSTP);
    if (screen->AwaitInput(seconds(60)) != Screen::Input::kRedraw) ::_exit(1);
    ::abort();
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, WUNTRACED), child);
  ASSERT_TRUE(WIFSTOPPED(status));
  EXPECT_THAT(Seen(), EndsWith(kGivenBack));
  ExpectRestored();
  ASSERT_EQ(::kill(child, SIGCONT), 0);
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGABRT);
  const std::string seen = Seen();
  EXPECT_THAT(seen, StartsWith(kTaken));
  EXPECT_THAT(seen, EndsWith(kGivenBack));
  ExpectRestored();
}

TEST_F(ScreenTest, WhatIsNoTerminalIsRefused) {
  const int file = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  EXPECT_THAT(Screen::Open(terminal_, file, Colour::kOn),
              StatusIs(absl::StatusCode::kFailedPrecondition, _));
  ::close(file);
}

TEST(PaintedTest, TonesAreColoursUnlessThereAreNone) {
  const std::vector<TopLine> lines = {{"bad", Tone::kBad}, {"plain"}};
  EXPECT_EQ(Painted(lines, Colour::kOn), "\x1b[H\x1b[31mbad\x1b[0m\x1b[K\r\nplain\x1b[K\x1b[J");
  EXPECT_EQ(Painted(lines, Colour::kOff), "\x1b[Hbad\x1b[K\r\nplain\x1b[K\x1b[J");
}

}  // namespace
}  // namespace muster::steer
