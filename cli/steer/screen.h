#pragma once

#include <signal.h>
#include <termios.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/steer/top_view.h"

namespace muster::steer {

/// Whether lines have tones: not with NO_COLOR.
enum class Colour : uint8_t { kOff, kOn };

/// The lines as a terminal shows them, from its upper left corner on. Pure.
std::string Painted(const std::vector<TopLine>& lines, Colour colour);

/// A terminal's whole screen, drawn anew in place. What was on it comes back however the process
/// ends, but for SIGKILL: at the end of this object's life, when it is stopped (Ctrl-Z) and when it
/// crashes. Signals that end or stop the process are taken over by AwaitInput meanwhile. One at a
/// time; belongs to the thread that made it.
class Screen {
 public:
  /// `in`, `out`: both the terminal. FailedPrecondition when they are none.
  static absl::StatusOr<std::unique_ptr<Screen>> Open(int in, int out, Colour colour);
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  TopSize size() const;
  void Draw(const std::vector<TopLine>& lines);

  enum class Input : uint8_t { kNothing, kQuit, kRedraw };
  /// q, Ctrl-C, SIGTERM, SIGHUP or the terminal's end: kQuit. Another size, or back from having
  /// been stopped: kRedraw. kNothing when `timeout` has passed.
  Input AwaitInput(std::chrono::milliseconds timeout);

 private:
  Screen(int in, int out, Colour colour) : in_(in), out_(out), colour_(colour) {}
  void Take();
  void GiveBack();
  Input OfSignal(uint32_t signal);
  Input OfKeys();

  const int in_;
  const int out_;
  const Colour colour_;
  int signals_ = -1;
  sigset_t mask_before_{};
};

}  // namespace muster::steer
