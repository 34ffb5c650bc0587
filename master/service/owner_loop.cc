#include "master/service/owner_loop.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "base/status.h"

namespace muster {
namespace {

absl::Status Gone() {
  return absl::UnavailableError("the master is stopping; try again, another one will answer");
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
      ticked_at_(clock->Now()) {}

OwnerLoop::~OwnerLoop() {
  Stop();
}

absl::Status OwnerLoop::Start() {
  MUSTER_RETURN_IF_ERROR(Sync());
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
          fmt::format("the master has {} requests waiting; try again later", queue_.size()));
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

absl::Status OwnerLoop::Sync() {
  const std::vector<Mutation> mutations = core_->TakeMutations();
  if (mutations.empty()) return absl::OkStatus();
  return journal_->Write(mutations);
}

bool OwnerLoop::RunBatch(std::vector<Item>* batch) {
  std::vector<absl::Status> statuses;
  statuses.reserve(batch->size());
  const StepTime at = Now();
  for (Item& item : *batch) statuses.push_back(item.step(*core_, at));
  if (at.now - ticked_at_ >= options_.tick) {
    ticked_at_ = at.now;
    core_->Tick(at);
  }
  if (absl::Status synced = Sync(); !synced.ok()) {
    // Nothing of the batch may be told: it is not known what of it the next start will find.
    Log(LogLevel::kError, "stopping: {}", Message(synced));
    MutexLock lock(&mutex_);
    failure_ = std::move(synced);
    stopped_ = true;
    return false;
  }
  for (size_t i = 0; i < batch->size(); ++i) (*batch)[i].answer(statuses[i]);
  batch->clear();
  if (const std::vector<std::string> files = core_->TakeUnusedFiles(); !files.empty()) {
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
  for (const Item& item : batch) item.answer(Gone());
}

}  // namespace muster
