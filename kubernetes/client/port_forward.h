#pragma once

#include <chrono>
#include <cstdint>
#include <stop_token>
#include <string>

#include "absl/status/status.h"
#include "base/clock.h"
#include "base/descriptors.h"
#include "kubernetes/config/credentials.h"

namespace muster::kubernetes {

/// A port inside a pod. The process may listen on the pod's loopback, too.
struct PodPort {
  std::string ns;
  std::string pod;
  uint16_t port = 0;
};

struct PortForwardOptions {
  std::chrono::milliseconds connect_deadline{10'000};
  /// A connection that is silent for half of this gets a ping, which also keeps it known to
  /// everything between. Without an answer it is left.
  std::chrono::milliseconds silence_max{30'000};
};

/// Carries bytes between `local`, a connected TCP socket, and a port of a pod, over a WebSocket of
/// the API server. Blocks until one of both ends its side (OK: what had come
/// from the pod was delivered).
///
/// Errors: those of HttpClient and of api_error.h; kUnavailable, with the words of Kubernetes, also
/// if nothing listens at the port. Thread-safe.
absl::Status ForwardPort(CredentialSource* credentials, const Clock* clock, const PodPort& target,
                         OwnedFd local, const PortForwardOptions& options, std::stop_token stop);

}  // namespace muster::kubernetes
