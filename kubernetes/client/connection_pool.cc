#include "kubernetes/client/connection_pool.h"

#include <utility>

namespace muster::kubernetes {
namespace {

constexpr size_t kIdleConnectionsMax = 4;
constexpr std::chrono::seconds kIdleTimeMax{30};

}  // namespace

std::unique_ptr<Connection> ConnectionPool::Take(const std::string& client_certificate) {
  const MutexLock lock(&mutex_);
  const TimePoint oldest = clock_->Now() - kIdleTimeMax;
  std::erase_if(idle_, [&](const Idle& one) {
    return one.since < oldest || one.client_certificate != client_certificate ||
           !one.connection->IsReusable();
  });
  if (idle_.empty()) return nullptr;
  std::unique_ptr<Connection> connection = std::move(idle_.back().connection);
  idle_.pop_back();
  return connection;
}

void ConnectionPool::Return(std::unique_ptr<Connection> connection,
                            const std::string& client_certificate) {
  if (!connection->IsReusable()) return;
  const MutexLock lock(&mutex_);
  if (idle_.size() >= kIdleConnectionsMax) idle_.erase(idle_.begin());
  idle_.push_back({.connection = std::move(connection),
                   .client_certificate = client_certificate,
                   .since = clock_->Now()});
}

}  // namespace muster::kubernetes
