#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <stop_token>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/random.h"
#include "kubernetes/client/client.h"
#include "kubernetes/model/resource.h"
#include "kubernetes/model/watch_cache.h"

namespace muster::kubernetes {

struct WatcherOptions {
  Resource resource = Resource::kPods;
  std::string ns;
  Selection selection;
  /// Spreads the tries of several clients.
  uint64_t seed = 0;
  /// What has changed, and what there is now. Empty changes come with the first list only, if there
  /// are no objects.
  std::function<void(const WatchCache::Changes&, const WatchCache::Objects&)> on_changes;
  /// The API server cannot be asked now; the watcher asks again after `wait`.
  std::function<void(const absl::Status&, std::chrono::milliseconds wait)> on_error;
};

/// Follows the objects of a kind in its own thread: it lists them, watches until the server ends
/// the watch (30 s), and lists again; so what a hanging or restarted server kept from it comes with
/// the next list. Both functions are called one at a time, with the watcher's lock held: they must
/// not call the watcher.
///
/// Thread-safe.
class Watcher {
 public:
  /// Starts at once. `client` and `clock` must outlive this.
  Watcher(Client* client, const Clock* clock, WatcherOptions options);
  /// Ends what the thread waits for, and joins it.
  ~Watcher();
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

  /// An object that another call answered with: it counts before the watch tells of it.
  void Apply(nlohmann::json object);

 private:
  void Run(const std::stop_token& stop);
  /// A list and a watch.
  absl::Status Follow(const std::stop_token& stop);
  absl::Status OnEvent(const nlohmann::json& event);
  void WaitFor(std::chrono::milliseconds wait, const std::stop_token& stop);

  Client* const client_;
  const Clock* const clock_;
  const WatcherOptions options_;
  Rng random_;
  Mutex mutex_;
  CondVar stopping_;
  WatchCache cache_ MUSTER_GUARDED_BY(mutex_);
  bool has_listed_ MUSTER_GUARDED_BY(mutex_) = false;
  std::jthread thread_;
};

}  // namespace muster::kubernetes
