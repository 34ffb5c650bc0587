#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "base/failpoint_config.h"
#include "base/status.h"

/// Named places on a path that must survive a crash. A test lets the process die, fail or linger
/// exactly there. Release builds have none of it (CMake option MUSTER_FAILPOINTS); where it is
/// built in but nothing is armed, a site costs one relaxed load.
///
///   MUSTER_FAILPOINT("journal.after-open");             // crash, stop, delay
///   MUSTER_FAILPOINT_OR_RETURN("journal.before-write"); // error, too: returned by the function
///
/// Names are "area.step", in lower case. A site registers its name when the program is loaded.
namespace muster {

/// What the environment says: `actions` MUSTER_FAILPOINTS, `once_folder` MUSTER_FAILPOINTS_ONCE,
/// `reached_file` MUSTER_FAILPOINTS_REACHED.
struct FailpointOptions {
  /// "name=action;...": crash (SIGKILL of this process), stop (SIGSTOP, until somebody sends
  /// SIGCONT), error (the site's own error path, as kInternal), full (the same, as
  /// kResourceExhausted: a disk without room), delay:50ms. With "@3" behind it only the third time
  /// that this process comes by. Without: every time.
  std::string actions;
  /// When not empty: an action happens only for who manages to create `once_folder`/name, so once
  /// among all processes that share the folder. A process that is started again lives.
  std::string once_folder;
  /// When not empty: every name is appended, a line, when this process comes by for the first time.
  std::string reached_file;
};

/// Arms failpoints; to be called before threads start. kInvalidArgument names what is wrong: a
/// syntax error, a name that this program does not have, an error where none can be returned.
/// Replaces what was armed before, and counts from 0 again.
absl::Status ArmFailpoints(const FailpointOptions& options);

/// The same from the environment, once a process. MUSTER_FAILPOINTS=list prints the names and
/// exits; a build without failpoints refuses to be told of any. Programs call it first thing.
absl::Status ArmFailpointsFromEnvironment();

/// Name of every site of this program, sorted, and whether it can return an error.
struct FailpointName {
  std::string name;
  bool returns_errors = false;
  friend auto operator<=>(const FailpointName&, const FailpointName&) = default;
};
std::vector<FailpointName> FailpointNames();

namespace failpoint_internal {

struct Site {
  Site(const char* name, bool returns_errors);
  /// What an armed process does here. Thread-safe.
  absl::Status Reach();

  const char* const name;
  const bool returns_errors;
  Site* const next;  // of the list of all sites
  std::atomic<bool> reached{false};
};

/// Whether anything is armed or recorded.
inline constinit std::atomic<bool> active{false};

template <size_t kSize>
struct Name {
  consteval Name(const char (&from)[kSize]) { std::copy_n(from, kSize, text); }
  char text[kSize];
};
template <Name kName, bool kReturnsErrors>
inline Site site{kName.text, kReturnsErrors};

inline absl::Status Pass(Site& site) {
  if (!active.load(std::memory_order_relaxed)) [[likely]]
    return absl::OkStatus();
  return site.Reach();
}

}  // namespace failpoint_internal
}  // namespace muster

#if MUSTER_WITH_FAILPOINTS
#define MUSTER_FAILPOINT(name) \
  static_cast<void>(           \
      ::muster::failpoint_internal::Pass(::muster::failpoint_internal::site<name, false>))
/// The status that is to be taken for that of the step which the site stands before or behind.
#define MUSTER_FAILPOINT_STATUS(name) \
  ::muster::failpoint_internal::Pass(::muster::failpoint_internal::site<name, true>)
#else
#define MUSTER_FAILPOINT(name) static_cast<void>(0)
#define MUSTER_FAILPOINT_STATUS(name) ::absl::OkStatus()
#endif
#define MUSTER_FAILPOINT_OR_RETURN(name) MUSTER_RETURN_IF_ERROR(MUSTER_FAILPOINT_STATUS(name))
