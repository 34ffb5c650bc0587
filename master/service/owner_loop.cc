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
  return absl::UnavailableError("the master is stopping; try again, another one will answer");
}

#if MUSTER_WITH_FAILPOINTS
/// Which records a batch has: a done, a commit or a manifest can be lost, or told too early, each
/// in its own way.
struct BatchContents {
  explicit BatchContents(const std::vector<Mutation>& mutations) {
    for (const Mutation& mutation : mutations) {
      done |= std::holds_alternative<DoneRecord>(mutation);
      commit |= std::holds_alternative<EraseDone>(mutation);
      manifest |= std::holds_alternative<PartitionRecord>(mutation);
      table |= std::holds_alternative<TableSpec>(mutation);
      node |= std::holds_alternative<NodeRecord>(mutation);
    }
  }
  bool done = false, commit = false, manifest = false, table = false, node = false;
};

void PassBeforeSync(const BatchContents& batch) {
  if (batch.done) MUSTER_FAILPOINT("done.before-sync");
  if (batch.commit) MUSTER_FAILPOINT("commit.before-sync");
  if (batch.manifest) MUSTER_FAILPOINT("manifest.before-sync");
  if (batch.table) MUSTER_FAILPOINT("table.before-sync");
  if (batch.node) MUSTER_FAILPOINT("node.before-sync");
}

void PassAfterSync(const BatchContents& batch) {
  if (batch.done) MUSTER_FAILPOINT("done.after-sync");
  if (batch.commit) MUSTER_FAILPOINT("commit.after-sync");
  if (batch.manifest) MUSTER_FAILPOINT("manifest.after-sync");
  if (batch.table) MUSTER_FAILPOINT("table.after-sync");
  if (batch.node) MUSTER_FAILPOINT("node.after-sync");
}
#endif

}  // namespace

OwnerLoop::OwnerLoop(std::unique_ptr<MasterCore> core, Journal* journal, const Clock* clock,
                     Options options,
                     std::function<void(const std::vector<std::string>&)> delete_files)
    : core_(std::move(core)),
      journal_(journal),
      clock_(clock),
      options_(options),
      delete_files_(std::move(delete_files)),
      commit_(core_.get(), options.tick, clock->Now()) {}

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

absl::Status OwnerLoop::Write(const std::vector<Mutation>& mutations) {
  if (mutations.empty()) return absl::OkStatus();
#if MUSTER_WITH_FAILPOINTS
  const BatchContents contents(mutations);
  PassBeforeSync(contents);
  MUSTER_RETURN_IF_ERROR(journal_->Write(mutations));
  PassAfterSync(contents);
  return absl::OkStatus();
#else
  return journal_->Write(mutations);
#endif
}

bool OwnerLoop::RunBatch(std::vector<Item>* batch) {
  [[maybe_unused]] const bool answers = !batch->empty();
  const absl::Status synced = Write(commit_.Step(std::exchange(*batch, {}), Now()));
  if (!synced.ok()) {
    // Nothing of the batch may be told: it is not known what of it the next start will find.
    *batch = commit_.TakeItems();
    Log(LogLevel::kError, "stopping: {}", Message(synced));
    MutexLock lock(&mutex_);
    failure_ = synced;
    stopped_ = true;
    return false;
  }
  const std::vector<std::string> files = commit_.Synced();
  if (answers) MUSTER_FAILPOINT("answer.after-send");
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
  for (const Item& item : batch) item.answer(Gone());
}

}  // namespace muster
