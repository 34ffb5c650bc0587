// What a session does if a shard must go back although it has not failed.
#include <fmt/format.h>

#include <cstdio>
#include <utility>

#include "worker_sdk/session/session_impl.h"

namespace muster::internal {

void SessionImpl::HandBack(const RunRef& run, std::string why) {
  bool rest = false;
  {
    MutexLock lock(&mutex_);
    rest = unwritten_.failed();
  }
  if (rest) return HandBackAndRest(run, std::move(why), &write_backoff_);
  std::fprintf(stderr, "muster: handed back: %s\n", why.c_str());
  GiveUp(run, sdk::ShardFailure{std::move(why), /*fatal=*/false, /*shortage=*/true});
}

void SessionImpl::HandBackAndRest(const RunRef& run, std::string why,
                                  sdk::ShortageBackoff* backoff) {
  sdk::ShortageBackoff::Step step;
  TimePoint until;
  {
    MutexLock lock(&mutex_);
    const TimePoint now = clock_.Now();
    step = backoff->Failed(now);
    until = now + step.pause;
    core_.RestUntil(until);
  }
  if (step.say) {
    std::fprintf(stderr,
                 "muster: a shard goes back, which is not counted as its failure: %s; trying again "
                 "in %.1f s%s\n",
                 why.c_str(), std::chrono::duration<double>(step.pause).count(),
                 step.unsaid == 0
                     ? ""
                     : fmt::format(" ({} more since the last such line)", step.unsaid).c_str());
  }
  GiveUp(run, sdk::ShardFailure{std::move(why), /*fatal=*/false, /*shortage=*/true});
  MutexLock lock(&mutex_);
  times_.wait_shard.Enter(clock_.Now());
  sdk::WaitingAsks asks(clock_.Now());
  while (failure_.ok() && !core_.draining() && clock_.Now() < until) {
    AwaitChange(until - clock_.Now(), &asks);
  }
  times_.wait_shard.Leave(clock_.Now());
}

}  // namespace muster::internal
