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

/// Whether lines are coloured. They are not if NO_COLOR is set.
enum class Colour : uint8_t { kOff, kOn };

/// The bytes that draw the lines on a terminal, from its upper left corner. Pure.
std::string Painted(const std::vector<TopLine>& lines, Colour colour);

/// A terminal's whole screen, which is redrawn in place. Its former contents come back when this
/// object is destroyed, when the process is stopped (Ctrl-Z), and when it crashes, but not after
/// SIGKILL. While it lives, AwaitInput handles the signals that end or stop the process. There can
/// be only one at a time. Belongs to the thread that made it.
class Screen {
 public:
  /// `in` and `out` must be terminals. Otherwise FailedPrecondition.
  static absl::StatusOr<std::unique_ptr<Screen>> Open(int in, int out, Colour colour);
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  TopSize size() const;
  void Draw(const std::vector<TopLine>& lines);

  enum class Input : uint8_t { kNothing, kQuit, kRedraw };
  /// Waits for input. kQuit: q, Ctrl-C, SIGTERM, SIGHUP, or the terminal's end. kRedraw: the size
  /// has changed, or the process was continued after a stop. kNothing: `timeout` has passed.
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
