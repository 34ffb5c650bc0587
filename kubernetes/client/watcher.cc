#include "kubernetes/client/watcher.h"

#include <utility>

#include "base/status.h"
#include "kubernetes/model/api_error.h"
#include "kubernetes/model/retry_wait.h"

namespace muster::kubernetes {
namespace {

/// A server that ends watches sooner is not well: it is asked less often.
constexpr std::chrono::seconds kWatchLengthMin{1};

}  // namespace

Watcher::Watcher(Client* client, const Clock* clock, WatcherOptions options)
    : client_(client),
      clock_(clock),
      options_(std::move(options)),
      random_(options_.seed),
      thread_([this](const std::stop_token& stop) { Run(stop); }) {}

Watcher::~Watcher() {
  thread_.request_stop();
  thread_.join();
}

void Watcher::Apply(nlohmann::json object) {
  const MutexLock lock(&mutex_);
  const WatchCache::Changes changes = cache_.Applied(std::move(object));
  if (!changes.empty()) options_.on_changes(changes, cache_.objects());
}

void Watcher::Run(const std::stop_token& stop) {
  uint32_t failures = 0;
  while (!stop.stop_requested()) {
    const TimePoint began = clock_->Now();
    const absl::Status status = Follow(stop);
    // A version that is too old is no failure: the next list has a new one.
    const bool is_well = status.ok() || KindOf(status) == ApiErrorKind::kGone;
    const bool lasted = clock_->Now() - began >= kWatchLengthMin;
    failures = is_well && lasted ? 0 : failures + 1;
    if (stop.stop_requested() || failures == 0) continue;
    const auto wait = RetryWait(failures, RetryAfterOf(status), &random_);
    if (!is_well) {
      const MutexLock lock(&mutex_);
      options_.on_error(status, wait);
    }
    WaitFor(wait, stop);
  }
}

absl::Status Watcher::Follow(const std::stop_token& stop) {
  MUSTER_ASSIGN_OR_RETURN(ObjectList list,
                          client_->List(options_.resource, options_.ns, options_.selection, stop));
  std::string version = list.version;
  {
    const MutexLock lock(&mutex_);
    const WatchCache::Changes changes =
        cache_.Listed(std::move(list.items), std::move(list.version));
    if (!changes.empty() || !has_listed_) options_.on_changes(changes, cache_.objects());
    has_listed_ = true;
  }
  return client_->Watch(
      options_.resource, options_.ns, options_.selection, version,
      [this](const nlohmann::json& event) { return OnEvent(event); }, stop);
}

absl::Status Watcher::OnEvent(const nlohmann::json& event) {
  const MutexLock lock(&mutex_);
  MUSTER_ASSIGN_OR_RETURN(const WatchCache::Changes changes, cache_.Received(event));
  if (!changes.empty()) options_.on_changes(changes, cache_.objects());
  return absl::OkStatus();
}

void Watcher::WaitFor(std::chrono::milliseconds wait, const std::stop_token& stop) {
  const std::stop_callback wake(stop, [this] {
    const MutexLock lock(&mutex_);
    stopping_.SignalAll();
  });
  const TimePoint end = clock_->Now() + wait;
  const MutexLock lock(&mutex_);
  while (!stop.stop_requested() && clock_->Now() < end) {
    stopping_.WaitFor(&mutex_, end - clock_->Now());
  }
}

}  // namespace muster::kubernetes
