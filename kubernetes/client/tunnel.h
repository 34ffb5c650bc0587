#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/descriptors.h"
#include "base/mutex.h"
#include "kubernetes/client/port_forward.h"
#include "kubernetes/config/credentials.h"

namespace muster::kubernetes {

struct TunnelOptions {
  std::string ns;
  /// Inside the pod.
  uint16_t port = 0;
  /// The name of the pod to which a connection goes now; an error: there is none now. Called for
  /// each connection, from several threads.
  std::function<absl::StatusOr<std::string>()> find_pod;
  /// At the same time; further ones are closed.
  size_t connections_max = 64;
  PortForwardOptions forward;
};

/// A port on 127.0.0.1 whose connections are carried to a port of a pod. The pod is looked for when
/// a connection comes, so a pod that has moved is found again. A connection that cannot be carried
/// is closed. Owns a thread, and one for each connection. Thread-safe.
class Tunnel {
 public:
  /// `credentials` and `clock` must outlive the tunnel. kUnavailable: no port can be had.
  static absl::StatusOr<std::unique_ptr<Tunnel>> Open(CredentialSource* credentials,
                                                      const Clock* clock, TunnelOptions options);
  /// Ends all connections.
  ~Tunnel();
  Tunnel(const Tunnel&) = delete;
  Tunnel& operator=(const Tunnel&) = delete;

  /// On 127.0.0.1.
  uint16_t port() const { return port_; }
  /// Why the newest connection that has ended was not carried to its end; OK if it was.
  absl::Status last_error() const;

 private:
  struct Carried {
    std::jthread thread;
    bool has_ended = false;
  };

  Tunnel(CredentialSource* credentials, const Clock* clock, TunnelOptions options, OwnedFd listener,
         WakeFd wake, uint16_t port);
  void Accept(const std::stop_token& stop);
  void Carry(OwnedFd local);
  absl::Status CarryOne(OwnedFd local, const std::stop_token& stop) const;
  void Join();

  CredentialSource* const credentials_;
  const Clock* const clock_;
  const TunnelOptions options_;
  const OwnedFd listener_;
  /// Ends the wait for connections.
  const WakeFd wake_;
  const uint16_t port_;
  mutable Mutex mutex_;
  std::list<Carried> carried_ MUSTER_GUARDED_BY(mutex_);
  absl::Status last_error_ MUSTER_GUARDED_BY(mutex_);
  std::jthread thread_;
};

}  // namespace muster::kubernetes
