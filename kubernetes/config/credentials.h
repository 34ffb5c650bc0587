#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "kubernetes/config/cluster_access.h"
#include "kubernetes/config/exec_plugin.h"

namespace muster::kubernetes {

/// Credentials of a plugin are renewed this long before they expire.
inline constexpr std::chrono::seconds kRenewBefore{10};

/// True if credentials that expire at this time may be used now. Pure.
bool AreFresh(const std::optional<WallTime>& expires, WallTime now);

/// The present credentials of an access. Files are read again for each request, because kubelets
/// and others replace them (a service account's token lives for about an hour). A plugin is run
/// again when its output expires, or when the server has refused it.
///
/// Thread-safe. Get() blocks while a plugin runs, for at most its deadline.
class CredentialSource {
 public:
  /// `clock` must outlive this.
  CredentialSource(ClusterAccess access, const Clock* clock,
                   std::chrono::milliseconds plugin_deadline = std::chrono::seconds(30));

  /// Errors name the file or the plugin.
  absl::StatusOr<Credentials> Get();

  /// The server did not accept these credentials. If they came from a plugin and are still the
  /// present ones, the plugin is asked again the next time.
  void Refused(const Credentials& credentials);

  const ClusterAccess& access() const { return access_; }

 private:
  absl::StatusOr<Credentials> OfPlugin();

  const ClusterAccess access_;
  const Clock* const clock_;
  const std::chrono::milliseconds plugin_deadline_;
  Mutex mutex_;
  std::optional<Credentials> of_plugin_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster::kubernetes
