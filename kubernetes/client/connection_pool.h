#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "kubernetes/client/connection.h"

namespace muster::kubernetes {

/// Connections that wait for their next request. Thread-safe.
class ConnectionPool {
 public:
  /// `clock` must outlive this.
  explicit ConnectionPool(const Clock* clock) : clock_(clock) {}

  /// A connection that was opened with this client certificate, or null. Those that the server has
  /// closed, and those idle for long (something between may have forgotten them), are dropped.
  std::unique_ptr<Connection> Take(const std::string& client_certificate);

  /// Keeps `connection` for another request, if the server does.
  void Return(std::unique_ptr<Connection> connection, const std::string& client_certificate);

 private:
  struct Idle {
    std::unique_ptr<Connection> connection;
    std::string client_certificate;
    TimePoint since;
  };

  const Clock* const clock_;
  Mutex mutex_;
  std::vector<Idle> idle_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster::kubernetes
