#include "base/failpoint.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/mutex.h"

namespace muster {
namespace {

using failpoint_internal::Site;

enum class Kind { kCrash, kStop, kError, kFull, kDelay };

struct Action {
  Kind kind = Kind::kCrash;
  std::chrono::milliseconds delay{0};
  uint64_t only_hit = 0;  // acts only at this hit; 0: at every hit
  uint64_t hits = 0;
};

constinit std::atomic<Site*> first_site{nullptr};

/// The armed failpoints of the process. They are global, because a site cannot get them as an
/// argument.
struct Armed {
  Mutex mutex;
  FailpointOptions options MUSTER_GUARDED_BY(mutex);
  std::map<std::string, Action, std::less<>> actions MUSTER_GUARDED_BY(mutex);
};
Armed& TheArmed() {
  static Armed* const armed = new Armed;  // never destroyed: threads may outlive main
  return *armed;
}

absl::Status Wrong(std::string_view entry, std::string_view why) {
  return absl::InvalidArgumentError(fmt::format(
      "MUSTER_FAILPOINTS: '{}': {}. Write name=crash, name=stop, name=error, name=full or "
      "name=delay:50ms. Add @3 to act at the third time only. Separate several with ;",
      entry, why));
}

std::optional<uint64_t> ParseNumber(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

absl::Status ParseAction(std::string_view entry, std::string_view text, Action* action) {
  if (const size_t at = text.find('@'); at != std::string_view::npos) {
    action->only_hit = ParseNumber(text.substr(at + 1)).value_or(0);
    if (action->only_hit == 0) return Wrong(entry, "@ must be followed by a number from 1 on");
    text = text.substr(0, at);
  }
  if (text == "crash") {
    action->kind = Kind::kCrash;
  } else if (text == "stop") {
    action->kind = Kind::kStop;
  } else if (text == "error") {
    action->kind = Kind::kError;
  } else if (text == "full") {
    action->kind = Kind::kFull;
  } else if (text.starts_with("delay:") && text.ends_with("ms")) {
    action->kind = Kind::kDelay;
    const std::optional<uint64_t> delay = ParseNumber(text.substr(6, text.size() - 8));
    if (!delay.has_value()) return Wrong(entry, "the delay is not a number of ms");
    action->delay = std::chrono::milliseconds(*delay);
  } else {
    return Wrong(entry, "there is no such action");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::map<std::string, Action, std::less<>>> ParseActions(std::string_view text) {
  std::map<std::string, Action, std::less<>> actions;
  const std::vector<FailpointName> names = FailpointNames();
  while (!text.empty()) {
    const size_t end = std::min(text.find(';'), text.size());
    const std::string_view entry = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (entry.empty()) continue;
    const size_t equals = entry.find('=');
    if (equals == std::string_view::npos) return Wrong(entry, "it has no =");
    const std::string name(entry.substr(0, equals));
    Action action;
    MUSTER_RETURN_IF_ERROR(ParseAction(entry, entry.substr(equals + 1), &action));
    const auto has = [&](bool errors) {
      return std::ranges::any_of(names, [&](const FailpointName& known) {
        return known.name == name && known.returns_errors >= errors;
      });
    };
    const bool error = action.kind == Kind::kError || action.kind == Kind::kFull;
    if (!has(false)) {
      return Wrong(entry, "this program has no such failpoint (MUSTER_FAILPOINTS=list shows them)");
    }
    if (error && !has(true)) return Wrong(entry, "this failpoint cannot return an error");
    if (!actions.emplace(name, action).second) return Wrong(entry, "it is given twice");
  }
  return actions;
}

/// True if this process is the one that must act at `name`.
bool Claim(const std::string& folder, std::string_view name) {
  if (folder.empty()) return true;
  const std::string path = fmt::format("{}/{}", folder, name);
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd >= 0) ::close(fd);
  return fd >= 0;
}

void Append(const std::string& path, std::string_view name) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0) return;
  const std::string line = fmt::format("{}\n", name);
  [[maybe_unused]] const ssize_t written = ::write(fd, line.data(), line.size());
  ::close(fd);
}

[[noreturn]] void Crash(std::string_view name) {
  // It uses SIGKILL, because that looks like a kill from outside. Another signal would be charged
  // to the trainer's shard.
  const std::string line = fmt::format("failpoint {}: SIGKILL\n", name);
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
  ::kill(::getpid(), SIGKILL);
  while (true) ::pause();
}

}  // namespace

namespace failpoint_internal {

Site::Site(const char* name, bool returns_errors)
    : name(name), returns_errors(returns_errors), next(first_site.exchange(this)) {}

absl::Status Site::Reach() {
  Action action;
  std::string once_folder;
  {
    Armed& armed = TheArmed();
    MutexLock lock(&armed.mutex);
    if (!reached.exchange(true) && !armed.options.reached_file.empty()) {
      Append(armed.options.reached_file, name);
    }
    const auto found = armed.actions.find(std::string_view(name));
    if (found == armed.actions.end()) return absl::OkStatus();
    const uint64_t hit = ++found->second.hits;
    if (found->second.only_hit != 0 && found->second.only_hit != hit) return absl::OkStatus();
    action = found->second;
    once_folder = armed.options.once_folder;
  }
  const bool error = action.kind == Kind::kError || action.kind == Kind::kFull;
  if ((error && !returns_errors) || !Claim(once_folder, name)) return absl::OkStatus();
  switch (action.kind) {
    case Kind::kCrash:
      Crash(name);
    case Kind::kStop:
      ::kill(::getpid(), SIGSTOP);
      return absl::OkStatus();
    case Kind::kDelay:
      SleepFor(action.delay);
      return absl::OkStatus();
    case Kind::kError:
      return absl::InternalError(fmt::format("injected at failpoint {}", name));
    case Kind::kFull:
      return absl::ResourceExhaustedError(
          fmt::format("injected at failpoint {}: No space left on device", name));
  }
  return absl::OkStatus();
}

}  // namespace failpoint_internal

std::vector<FailpointName> FailpointNames() {
  std::vector<FailpointName> names;
  for (const Site* site = first_site.load(); site != nullptr; site = site->next) {
    names.push_back({site->name, site->returns_errors});
  }
  std::ranges::sort(names);
  return names;
}

absl::Status ArmFailpoints(const FailpointOptions& options) {
  MUSTER_ASSIGN_OR_RETURN(auto actions, ParseActions(options.actions));
  Armed& armed = TheArmed();
  MutexLock lock(&armed.mutex);
  for (Site* site = first_site.load(); site != nullptr; site = site->next) {
    site->reached.store(false);
  }
  armed.options = options;
  armed.actions = std::move(actions);
  failpoint_internal::active.store(!armed.actions.empty() || !options.reached_file.empty());
  return absl::OkStatus();
}

absl::Status ArmFailpointsFromEnvironment() {
  const auto get = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  const FailpointOptions options{.actions = get("MUSTER_FAILPOINTS"),
                                 .once_folder = get("MUSTER_FAILPOINTS_ONCE"),
                                 .reached_file = get("MUSTER_FAILPOINTS_REACHED")};
#if MUSTER_WITH_FAILPOINTS
  if (options.actions == "list") {
    for (const FailpointName& name : FailpointNames()) {
      fmt::print("{}{}\n", name.name, name.returns_errors ? " error" : "");
    }
    std::fflush(stdout);
    std::_Exit(0);
  }
  static const absl::Status status = ArmFailpoints(options);
  return status;
#else
  if (options.actions.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "MUSTER_FAILPOINTS is set, but this build has none. Configure it with -DMUSTER_FAILPOINTS=ON "
      "(any build type but Release has them)");
#endif
}

}  // namespace muster
