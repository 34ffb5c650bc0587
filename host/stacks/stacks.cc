#include "host/stacks/stacks.h"

#include <cxxabi.h>
#include <elfutils/libdwfl.h>
#include <fmt/format.h>
#include <string.h>

#include <cinttypes>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <vector>

#include "base/file.h"

namespace muster {
namespace {

constexpr uint64_t kProcFileMax = 4096;  // bytes of text

struct Frame {
  uint64_t address = 0;  // of the instruction that is being executed, or was last
};

struct Printing {
  pid_t pid = 0;
  StackLimits limits;
  const std::function<void(const std::string& line)>* print = nullptr;
  Dwfl* dwfl = nullptr;
  int threads = 0;
  std::vector<Frame> frames;  // of the present thread
};

/// The first line of a file in /proc. "" if it cannot be read.
std::string ProcLine(pid_t pid, pid_t thread, std::string_view file) {
  const absl::StatusOr<std::string> text =
      ReadFile(fmt::format("/proc/{}/task/{}/{}", pid, thread, file), kProcFileMax);
  return text.ok() ? text->substr(0, text->find('\n')) : "";
}

std::string_view StateText(char state) {
  switch (state) {
    case 'R':
      return "running";
    case 'S':
      return "sleeping";
    case 'D':
      return "waiting for the kernel (disk?)";
    case 'T':
    case 't':
      return "stopped";
    case 'Z':
      return "ended";
    default:
      return "in an unknown state";
  }
}

/// "thread 12 (name), sleeping in futex_wait_queue".
std::string ThreadText(pid_t pid, pid_t thread) {
  const std::string stat = ProcLine(pid, thread, "stat");
  const size_t after_name = stat.rfind(") ");
  const char state = after_name == std::string::npos ? '?' : stat[after_name + 2];
  const std::string waits = ProcLine(pid, thread, "wchan");
  const bool known = !waits.empty() && waits != "0";
  return fmt::format("thread {} ({}), {}{}{}", thread, ProcLine(pid, thread, "comm"),
                     StateText(state), known ? " in " : "", known ? waits : "");
}

std::string Demangled(const char* symbol) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(symbol, nullptr, nullptr, &status), std::free);
  return status == 0 && text != nullptr ? text.get() : symbol;
}

/// "0x7f12 (anonymous namespace)::Train()+0x1c (trainer)".
std::string FrameText(Dwfl* dwfl, const Frame& frame) {
  Dwfl_Module* const module = dwfl_addrmodule(dwfl, frame.address);
  std::string text = fmt::format("{:#x}", frame.address);
  if (module == nullptr) return text + " (in no file)";
  GElf_Off offset = 0;
  GElf_Sym symbol;
  const char* const name =
      dwfl_module_addrinfo(module, frame.address, &offset, &symbol, nullptr, nullptr, nullptr);
  if (name != nullptr) text += fmt::format(" {}+{:#x}", Demangled(name), offset);
  const char* const file =
      dwfl_module_info(module, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr);
  const std::string_view path = file != nullptr ? file : "?";
  return fmt::format("{} ({})", text, path.substr(path.rfind('/') + 1));
}

int TakeFrame(Dwfl_Frame* frame, void* argument) {
  auto* const printing = static_cast<Printing*>(argument);
  Dwarf_Addr address = 0;
  bool is_activation = false;
  if (!dwfl_frame_pc(frame, &address, &is_activation)) return DWARF_CB_ABORT;
  // A return address lies after its call, so this goes one byte back.
  printing->frames.push_back({is_activation ? address : address - 1});
  return static_cast<int>(printing->frames.size()) < printing->limits.frames ? DWARF_CB_OK
                                                                             : DWARF_CB_ABORT;
}

int PrintThread(Dwfl_Thread* thread, void* argument) {
  auto* const printing = static_cast<Printing*>(argument);
  const auto& print = *printing->print;
  if (++printing->threads > printing->limits.threads) {
    print(fmt::format("there are more than {} threads; the others are left out",
                      printing->limits.threads));
    return DWARF_CB_ABORT;
  }
  // The state is read before the thread is stopped, because stopping changes it.
  print(ThreadText(printing->pid, dwfl_thread_tid(thread)));
  printing->frames.clear();
  const bool all = dwfl_thread_getframes(thread, &TakeFrame, printing) == 0;
  // The thread runs again before the names are looked up, which takes longer.
  const char* const error = all ? nullptr : dwfl_errmsg(-1);
  for (size_t i = 0; i < printing->frames.size(); ++i) {
    print(fmt::format("  #{} {}", i, FrameText(printing->dwfl, printing->frames[i])));
  }
  const bool cut = static_cast<int>(printing->frames.size()) >= printing->limits.frames;
  if (cut) {
    print("  ...");
  } else if (printing->frames.empty()) {
    print(fmt::format("  no stack: {}", error != nullptr ? error : "unknown error"));
  }
  return DWARF_CB_OK;
}

}  // namespace

void PrintStacks(pid_t pid, const StackLimits& limits,
                 const std::function<void(const std::string& line)>& print) {
  // Debug information must not be fetched from the network.
  ::unsetenv("DEBUGINFOD_URLS");
  char* debuginfo_path = nullptr;
  const Dwfl_Callbacks callbacks = {.find_elf = dwfl_linux_proc_find_elf,
                                    .find_debuginfo = dwfl_standard_find_debuginfo,
                                    .section_address = nullptr,
                                    .debuginfo_path = &debuginfo_path};
  const std::unique_ptr<Dwfl, void (*)(Dwfl*)> dwfl(dwfl_begin(&callbacks), dwfl_end);
  Printing printing{.pid = pid, .limits = limits, .print = &print, .dwfl = dwfl.get()};
  int error = dwfl == nullptr ? -1 : dwfl_linux_proc_report(dwfl.get(), pid);
  if (error == 0) error = dwfl_report_end(dwfl.get(), nullptr, nullptr);
  if (error == 0) error = dwfl_linux_proc_attach(dwfl.get(), pid, /*assume_ptrace_stopped=*/false);
  if (error != 0) {
    print(fmt::format("no stacks of process {}: {}", pid,
                      error > 0 ? ::strerror(error) : dwfl_errmsg(-1)));
    return;
  }
  dwfl_getthreads(dwfl.get(), &PrintThread, &printing);
}

}  // namespace muster
