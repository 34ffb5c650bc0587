#include "master/service/owner_loop.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/check.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "base/status.h"

namespace muster {
namespace {

absl::Status Gone() {
  return absl::UnavailableError("the master is stopping; try again, another master will answer");
}

}  // namespace

OwnerLoop::OwnerLoop(std::unique_ptr<MasterCore> core, Journal* journal, const Clock* clock,
                     Options options,
                     std::function<void(const std::vector<std::string>&)> delete_files)
    : core_(std::move(core)),
      journal_(journal),
      clock_(clock),
      options_(options),
      delete_files_(std::move(delete_files)),
      commit_(core_.get(), options.tick, clock->Now()),
      failpoints_(*core_),
      looked_at_(clock->Now()) {}

OwnerLoop::~OwnerLoop() {
  Stop();
}

absl::Status OwnerLoop::Start() {
  MUSTER_FAILPOINT("start.before-sync");
  MUSTER_RETURN_IF_ERROR(Write(core_->TakeMutations()));
  MUSTER_FAILPOINT("start.after-sync");
  MutexLock lock(&mutex_);
  MUSTER_CHECK(stopped_ && !thread_.joinable());
  stopped_ = false;
  thread_ = std::thread([this] { Run(); });
  return absl::OkStatus();
}

void OwnerLoop::Post(Item item) {
  absl::Status refusal;
  {
    MutexLock lock(&mutex_);
    if (stopped_) {
      refusal = Gone();
    } else if (queue_.size() >= options_.queue_max) {
      refusal = absl::ResourceExhaustedError(
          fmt::format("the master is busy: {} requests wait; try again later", queue_.size()));
    } else {
      queue_.push_back(std::move(item));
      if (queue_.size() == 1) changed_.SignalAll();
      return;
    }
  }
  item.answer(refusal);
}

void OwnerLoop::Stop() {
  {
    MutexLock lock(&mutex_);
    stopped_ = true;
    changed_.SignalAll();
  }
  if (thread_.joinable()) thread_.join();
}

std::optional<absl::Status> OwnerLoop::failure() const {
  MutexLock lock(&mutex_);
  return failure_;
}

absl::Status OwnerLoop::Write(const std::vector<Mutation>& mutations) {
  if (mutations.empty()) return LookIfDue();
  failpoints_.PassBeforeSync(mutations);
  MUSTER_RETURN_IF_ERROR(journal_->Write(mutations));
  failpoints_.PassAfterSync();
  looked_at_ = clock_->Now();
  return absl::OkStatus();
}

absl::Status OwnerLoop::LookIfDue() {
  const TimePoint now = clock_->Now();
  if (now - looked_at_ < options_.look_every) return absl::OkStatus();
  looked_at_ = now;
  return journal_->Look();
}

bool OwnerLoop::RunBatch(std::vector<Item>* batch) {
  const absl::Status synced = Write(commit_.Step(std::exchange(*batch, {}), Now()));
  if (!synced.ok()) {
    // No result of the batch may be told, because it is not known which part of it the next start
    // will find.
    *batch = commit_.TakeItems();
    Log(LogLevel::kError, "stopping: {}", Message(synced));
    MutexLock lock(&mutex_);
    failure_ = synced;
    stopped_ = true;
    return false;
  }
  const std::vector<std::string> files = commit_.Synced();
  if (!files.empty()) {
    delete_files_(files);
  }
  return true;
}

void OwnerLoop::Run() {
  std::vector<Item> batch;
  bool running = true;
  while (running) {
    {
      MutexLock lock(&mutex_);
      if (queue_.empty() && !stopped_) changed_.WaitFor(&mutex_, options_.tick);
      running = !stopped_;
      if (queue_.size() <= options_.batch_max) {
        batch = std::exchange(queue_, {});
      } else {
        const auto end = queue_.begin() + static_cast<std::ptrdiff_t>(options_.batch_max);
        batch.assign(std::make_move_iterator(queue_.begin()), std::make_move_iterator(end));
        queue_.erase(queue_.begin(), end);
      }
    }
    running = running && RunBatch(&batch);
  }
  {
    MutexLock lock(&mutex_);
    std::move(queue_.begin(), queue_.end(), std::back_inserter(batch));
    queue_.clear();
  }
  for (Item& item : commit_.TakeItems()) batch.push_back(std::move(item));
  for (const Item& item : batch) item.answer(Gone());
}

}  // namespace muster
