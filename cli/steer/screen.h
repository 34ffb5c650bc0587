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

/// A terminal's whole screen, redrawn in place. Its former contents come back however the process
/// ends, except by SIGKILL: when this object is destroyed, when the process is stopped (Ctrl-Z),
/// and when it crashes. Meanwhile, AwaitInput handles the signals that end or stop the process. One
/// at a time; belongs to the thread that made it.
class Screen {
 public:
  /// `in` and `out` are the terminal. FailedPrecondition if they are not.
  static absl::StatusOr<std::unique_ptr<Screen>> Open(int in, int out, Colour colour);
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  TopSize size() const;
  void Draw(const std::vector<TopLine>& lines);

  enum class Input : uint8_t { kNothing, kQuit, kRedraw };
  /// q, Ctrl-C, SIGTERM, SIGHUP or the terminal's end: kQuit. Another size, or continued after a
  /// stop: kRedraw. kNothing if `timeout` has passed.
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
