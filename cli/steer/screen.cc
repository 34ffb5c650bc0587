#include "cli/steer/screen.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string_view>

#include "base/status.h"

namespace muster::steer {
namespace {

// Switches to the alternate screen, without cursor and line wrap. The other text switches back.
constexpr std::string_view kTakeScreen = "\x1b[?1049h\x1b[?25l\x1b[?7l";
constexpr std::string_view kGiveScreenBack = "\x1b[?7h\x1b[?25h\x1b[?1049l";
constexpr std::array<int, 4> kCrashes = {SIGSEGV, SIGBUS, SIGFPE, SIGABRT};
constexpr std::array<int, 6> kSignals = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH};

/// What a crash handler needs. It is prepared in advance.
struct Rescue {
  int in = -1;
  int out = -1;
  termios before{};
};
Rescue rescue;

/// Calls only functions that a signal handler may call.
void RestoreTerminal() {
  if (rescue.in < 0) return;
  [[maybe_unused]] const ssize_t written =
      ::write(rescue.out, kGiveScreenBack.data(), kGiveScreenBack.size());
  ::tcsetattr(rescue.in, TCSADRAIN, &rescue.before);
}

void OnCrash(int signal) {
  RestoreTerminal();
  // Because of SA_RESETHAND, the signal now ends the process as usual.
  ::raise(signal);
}

void WriteAll(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;  // the terminal is gone; the next read reports that
    text.remove_prefix(static_cast<size_t>(written));
  }
}

std::string_view CodeOf(Tone tone) {
  switch (tone) {
    case Tone::kHeading:
      return "\x1b[1m";
    case Tone::kBad:
      return "\x1b[31m";
    case Tone::kOld:
      return "\x1b[2m";
    case Tone::kPlain:
      break;
  }
  return "";
}

}  // namespace

std::string Painted(const std::vector<TopLine>& lines, Colour colour) {
  std::string text = "\x1b[H";
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::string_view code = colour == Colour::kOn ? CodeOf(lines[i].tone) : "";
    // Each line is erased when it is rewritten, so that nothing flickers.
    text += fmt::format("{}{}{}{}\x1b[K", i == 0 ? "" : "\r\n", code, lines[i].text,
                        code.empty() ? "" : "\x1b[0m");
  }
  return text + "\x1b[J";
}

absl::StatusOr<std::unique_ptr<Screen>> Screen::Open(int in, int out, Colour colour) {
  if (::isatty(in) != 1 || ::isatty(out) != 1 || ::tcgetattr(in, &rescue.before) != 0) {
    return absl::FailedPreconditionError("input and output are no terminal");
  }
  std::unique_ptr<Screen> screen(new Screen(in, out, colour));
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : kSignals) sigaddset(&set, signal);
  ::pthread_sigmask(SIG_BLOCK, &set, &screen->mask_before_);
  screen->signals_ = ::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  if (screen->signals_ < 0) return ErrnoStatus(errno, "signalfd");
  for (const int signal : kCrashes) {
    struct sigaction action{};
    action.sa_handler = OnCrash;
    action.sa_flags = static_cast<int>(SA_RESETHAND | SA_NODEFER);
    ::sigaction(signal, &action, nullptr);
  }
  screen->Take();
  return screen;
}

Screen::~Screen() {
  GiveBack();
  for (const int signal : kCrashes) ::signal(signal, SIG_DFL);
  if (signals_ >= 0) ::close(signals_);
  ::pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
}

void Screen::Take() {
  rescue.in = in_;
  rescue.out = out_;
  termios raw = rescue.before;
  raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  raw.c_cc[VMIN] = 0;
  raw.c_cc[VTIME] = 0;
  ::tcsetattr(in_, TCSADRAIN, &raw);
  WriteAll(out_, kTakeScreen);
}

void Screen::GiveBack() {
  RestoreTerminal();
  rescue.in = -1;
}

TopSize Screen::size() const {
  winsize size{};
  const bool known = ::ioctl(out_, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0;
  return known ? TopSize{.columns = size.ws_col, .rows = size.ws_row}
               : TopSize{.columns = 80, .rows = 24};
}

void Screen::Draw(const std::vector<TopLine>& lines) {
  WriteAll(out_, Painted(lines, colour_));
}

Screen::Input Screen::OfSignal(uint32_t signal) {
  if (signal == SIGWINCH) return Input::kRedraw;
  if (signal != SIGTSTP) return Input::kQuit;
  GiveBack();
  ::raise(SIGSTOP);
  Take();
  return Input::kRedraw;
}

Screen::Input Screen::OfKeys() {
  std::array<char, 64> keys;
  const ssize_t got = ::read(in_, keys.data(), keys.size());
  if (got < 0 && errno == EINTR) return Input::kNothing;
  if (got <= 0) return Input::kQuit;  // the terminal is gone
  for (const char key : std::string_view(keys.data(), static_cast<size_t>(got))) {
    if (key == 'q' || key == 'Q') return Input::kQuit;
  }
  return Input::kNothing;
}

Screen::Input Screen::AwaitInput(std::chrono::milliseconds timeout) {
  std::array<pollfd, 2> wait = {{{.fd = signals_, .events = POLLIN, .revents = 0},
                                 {.fd = in_, .events = POLLIN, .revents = 0}}};
  if (::poll(wait.data(), wait.size(), static_cast<int>(timeout.count())) <= 0) {
    return Input::kNothing;
  }
  signalfd_siginfo info;
  if (::read(signals_, &info, sizeof(info)) == sizeof(info)) return OfSignal(info.ssi_signo);
  return wait[1].revents != 0 ? OfKeys() : Input::kNothing;
}

}  // namespace muster::steer
