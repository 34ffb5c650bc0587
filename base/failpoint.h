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

/// Named places on a path that must survive a crash. A test can make the process die, fail or wait
/// exactly there. Release builds have no failpoints (CMake option MUSTER_FAILPOINTS). In other
/// builds, a site costs one relaxed load if nothing is armed.
///
///   MUSTER_FAILPOINT("journal.after-open");             // crash, stop, delay
///   MUSTER_FAILPOINT_OR_RETURN("journal.before-write"); // error, too: returned by the function
///
/// Names are "area.step", in lower case. A site registers its name when the program is loaded.
namespace muster {

/// What the environment says: `actions` is MUSTER_FAILPOINTS, `once_folder` is
/// MUSTER_FAILPOINTS_ONCE, and `reached_file` is MUSTER_FAILPOINTS_REACHED.
struct FailpointOptions {
  /// "name=action;...". The actions are: crash (SIGKILL of this process), stop (SIGSTOP, until a
  /// SIGCONT comes), error (the site returns kInternal), full (the site returns kResourceExhausted:
  /// the disk is full), delay:50ms. With "@3" after it, an action happens only the third time that
  /// this process gets there, otherwise every time.
  std::string actions;
  /// If not empty, only the process that can create `once_folder`/name acts. So each failpoint acts
  /// once among all processes that share the folder, and a restarted process survives.
  std::string once_folder;
  /// If not empty, this process appends a line with the name when it first gets to a failpoint.
  std::string reached_file;
};

/// Arms failpoints; call it before threads start. kInvalidArgument names the problem: a syntax
/// error, a name that this program does not have, or an error at a site that cannot return one.
/// Replaces earlier failpoints, and counts from 0 again.
absl::Status ArmFailpoints(const FailpointOptions& options);

/// The same from the environment, once per process. MUSTER_FAILPOINTS=list prints the names and
/// exits. A build without failpoints refuses the variable. Programs call it first.
absl::Status ArmFailpointsFromEnvironment();

/// The name of every site of this program, sorted, and whether the site can return an error.
struct FailpointName {
  std::string name;
  bool returns_errors = false;
  friend auto operator<=>(const FailpointName&, const FailpointName&) = default;
};
std::vector<FailpointName> FailpointNames();

namespace failpoint_internal {

struct Site {
  Site(const char* name, bool returns_errors);
  /// Does what is armed for this site. Thread-safe.
  absl::Status Reach();

  const char* const name;
  const bool returns_errors;
  Site* const next;  // in the list of all sites
  std::atomic<bool> reached{false};
};

/// True if anything is armed or recorded.
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
/// The status to use instead of the status of the step before or after the site.
#define MUSTER_FAILPOINT_STATUS(name) \
  ::muster::failpoint_internal::Pass(::muster::failpoint_internal::site<name, true>)
#else
#define MUSTER_FAILPOINT(name) static_cast<void>(0)
#define MUSTER_FAILPOINT_STATUS(name) ::absl::OkStatus()
#endif
#define MUSTER_FAILPOINT_OR_RETURN(name) MUSTER_RETURN_IF_ERROR(MUSTER_FAILPOINT_STATUS(name))
