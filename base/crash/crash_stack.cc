#include "base/crash/crash_stack.h"

#include <execinfo.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <mutex>
#include <string_view>

namespace muster {
namespace {

struct CrashSignal {
  int signal;
  std::string_view name;
};
constexpr std::array<CrashSignal, 5> kCrashes = {{{SIGSEGV, "SIGSEGV"},
                                                  {SIGBUS, "SIGBUS"},
                                                  {SIGFPE, "SIGFPE"},
                                                  {SIGILL, "SIGILL"},
                                                  {SIGABRT, "SIGABRT"}}};

/// Calls only functions that a signal handler may call.
void Print(std::string_view text) {
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
}

/// The event of a crash contains twenty lines of the log. This leaves some of them for the
/// process's own messages.
constexpr int kFramesMax = 12;
/// The frames of the handler, and of what the kernel puts above the crash.
constexpr int kOwnFrames = 2;

void OnCrash(int signal, siginfo_t* info, void* /*context*/) {
  std::array<void*, kOwnFrames + kFramesMax> frames{};
  const int count = ::backtrace(frames.data(), static_cast<int>(frames.size()));
  for (const CrashSignal& crash : kCrashes) {
    if (crash.signal != signal) continue;
    Print("muster: this process crashed with ");
    Print(crash.name);
    Print(". The stack of the thread, newest first:\n");
  }
  if (count > kOwnFrames) {
    ::backtrace_symbols_fd(frames.data() + kOwnFrames, count - kOwnFrames, STDERR_FILENO);
  }
  // Because of SA_RESETHAND, a crashed instruction runs again after this and ends the process, so a
  // core file shows it. A signal that was sent does not come again by itself.
  if (info->si_code <= 0) ::raise(signal);
}

}  // namespace

void PrintStackOfCrash() {
  static std::once_flag once;
  std::call_once(once, [] {
    // The first call of backtrace() loads a library, which a handler may not do.
    void* frame = nullptr;
    ::backtrace(&frame, 1);
    for (const CrashSignal& crash : kCrashes) {
      struct sigaction before{};
      if (::sigaction(crash.signal, nullptr, &before) != 0) continue;
      if ((before.sa_flags & SA_SIGINFO) != 0 || before.sa_handler != SIG_DFL) continue;
      struct sigaction action{};
      action.sa_sigaction = OnCrash;
      action.sa_flags = SA_SIGINFO | SA_RESETHAND | SA_NODEFER | SA_ONSTACK;
      ::sigaction(crash.signal, &action, nullptr);
    }
  });
}

}  // namespace muster
