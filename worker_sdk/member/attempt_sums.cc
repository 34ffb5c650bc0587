#include "worker_sdk/member/attempt_sums.h"

#include <fmt/format.h>

#include <numeric>
#include <utility>

#include "base/failpoint.h"
#include "base/status.h"

namespace muster::internal {

AttemptSums::~AttemptSums() {
  *alive_ = false;
  reducer_.reset();  // waits for its callbacks
}

void AttemptSums::CarryOut(const MemberDesk::Orders& orders) {
  if (orders.effects.ring) FollowRing();
  if (orders.effects.sums || orders.all_blocks) {
    wanted_ = options_.desk->Look([](DeskContents& desk) { return desk.core->WantedSums(); });
    const size_t blocks = options_.gradients->blocks()->size();
    begun_.Follow(wanted_, blocks);
    std::vector<uint32_t> all(blocks);
    std::iota(all.begin(), all.end(), 0u);
    Give(all);
  } else if (!orders.filled.empty()) {
    Give(orders.filled);
  }
}

// ---- the ring ----

void AttemptSums::FollowRing() {
  ring_ = options_.desk->Look([](DeskContents& desk) { return desk.core->WantedRing(); });
  sums_ = nullptr;
  if (ending_) return;
  if (reducer_ == nullptr) {
    if (ring_.has_value()) Start(*ring_);
    return;
  }
  ending_ = true;
  reducer_->End([this, alive = alive_] {
    if (!*alive) return;
    ending_ = false;
    reducer_ = nullptr;
    if (!ring_.has_value()) return;
    Start(*ring_);
    CarryOut({.all_blocks = true});
  });
}

void AttemptSums::Start(const sdk::GroupRing& ring) {
  collectives::ReducerOptions options;
  options.lineage = ring.lineage;
  options.attempt = ring.attempt;
  options.rank = ring.rank;
  options.members = ring.members;
  options.listener = options_.listener;
  options.backend = options_.backend;
  options.buckets = options_.gradients->blocks()->size();
  for (uint32_t i = 0; i < options_.gradients->size(); ++i) {
    options.on_device |= options_.gradients->elsewhere(i);
  }
  reducer_ = collectives::Reducer::Start(
      std::move(options), [desk = options_.desk, attempt = ring.attempt](SuspectedMember member) {
        desk->Tell([&](DeskContents& on) { on.core->OnSumFailed(attempt, std::move(member)); });
      });
}

// ---- blocks ----

void AttemptSums::Give(std::span<const uint32_t> blocks) {
  if (!wanted_.has_value() || reducer_ == nullptr || ending_ ||
      ring_->attempt != wanted_->attempt) {
    return;
  }
  std::vector<uint32_t> ready;
  uint64_t epoch = 0;
  options_.desk->Look([&](DeskContents& desk) {
    sdk::OwnGradients& gradients = *desk.gradients;
    // If the core wants another sum by now, the next orders say so.
    if (desk.over() || desk.core->WantedSums() != wanted_) return;
    if (gradients.run() != wanted_->run) {
      // A member without minibatches adds zeros. Otherwise its trainer begins the run.
      const bool free = desk.reads == 0 && !gradients.writing();
      if (!wanted_->share.empty() || !free) return;
      gradients.Begin(wanted_->run);
    }
    for (const uint32_t block : blocks) {
      if (begun_.Begin(block, &gradients)) ready.push_back(block);
    }
    desk.reads += ready.size();
    epoch = desk.core->view().work->shard.epoch.value();
  });
  if (ready.empty()) return;
  const bool same = sums_ != nullptr && run_ == wanted_->run &&
                    sums_->attempt == wanted_->attempt && sums_->after.step == wanted_->step;
  absl::Status status = same ? absl::OkStatus() : NewSums(*wanted_, epoch);
  size_t given = 0;
  while (status.ok() && given < ready.size()) {
    status = GiveOne(ready[given]);
    if (status.ok()) ++given;
  }
  if (status.ok()) return;
  options_.desk->Tell([&](DeskContents& desk) {
    desk.reads -= ready.size() - given;
    if (absl::IsOutOfRange(status)) {
      desk.core->OnTrainerFailed(wanted_->run, std::string(Message(status)), /*fatal=*/false);
    } else {
      desk.Fail(status);
    }
  });
}

absl::Status AttemptSums::NewSums(const sdk::WantedSum& wanted, uint64_t epoch) {
  // If nobody else has the sums of the step before, their memory is used again. New memory costs
  // more than the addition: the system clears each page of it when it is touched first.
  const bool again = sums_ != nullptr && sums_.use_count() == 1 && device() == nullptr;
  if (!again) {
    MUSTER_ASSIGN_OR_RETURN(sums_, StepTotals::Create(*options_.gradients));
  }
  sums_->attempt = wanted.attempt;
  sums_->after = {ring_->lineage, wanted.step};
  sums_->facts = {.epoch = epoch};
  run_ = wanted.run;
  return sums_->Allocate(*options_.gradients, device());
}

absl::Status AttemptSums::GiveOne(uint32_t block) {
  const auto done = [this, sums = sums_, run = run_, block](const absl::Status& status,
                                                            uint32_t digest) {
    OnBlock(sums, run, block, status, digest);
  };
  // It counts as read, so nobody writes to it.
  sdk::OwnGradients& gradients = *options_.gradients;
  const std::optional<uint32_t> on_device = gradients.BucketElsewhere(block);
  if (!on_device.has_value()) {
    MUSTER_ASSIGN_OR_RETURN(const std::span<const std::byte> in, gradients.Encoded(block));
    reducer_->Sum(wanted_->step, block, (*gradients.blocks())[block].dtype, in,
                  sums_->encoded(block), done);
    return absl::OkStatus();
  }
  const std::shared_ptr<collectives::GpuBucket>& here = options_.device_buckets[*on_device];
  if (gradients.zero(*on_device)) MUSTER_RETURN_IF_ERROR(here->Clear());
  reducer_->SumOnDevice(wanted_->step, block,
                        {here, sums_->device_encoded(block), sums_->device_floats(block)}, done);
  return absl::OkStatus();
}

void AttemptSums::OnBlock(const std::shared_ptr<StepTotals>& sums, sdk::StepRunNumber run,
                          uint32_t block, const absl::Status& status, uint32_t digest) {
  options_.desk->Tell([&](DeskContents& desk) {
    --desk.reads;
    desk.Freed();
    if (absl::IsOutOfRange(status)) {
      // A device finds out here what Write and Decode find out of buckets in this process.
      const uint32_t bucket = (*desk.gradients->blocks())[block].buckets.front();
      desk.gradients->MarkBad(run, bucket);
      desk.core->OnTrainerFailed(
          run,
          fmt::format("the gradient of bucket \"{}\": {}", options_.gradients->tensor(bucket).name,
                      Message(status)),
          /*fatal=*/false);
    } else if (!status.ok() && !absl::IsAborted(status)) {
      // Nothing is wrong with the data: this process cannot add any more, but the next one may.
      desk.Fail(status);
    }
  });
  if (!status.ok() || sums != sums_) return;
  ++moved_;
  const std::optional<uint32_t> all =
      begun_.OnBlock(sums->attempt, sums->after.step, block, digest);
  if (all.has_value()) Finish(*all);
}

void AttemptSums::Finish(uint32_t digest) {
  const absl::Status decoded = sums_->Decode(*options_.gradients);
  MUSTER_FAILPOINT("group.after-sum");
  options_.desk->Tell([&](DeskContents& desk) {
    if (!decoded.ok()) {
      desk.core->OnTrainerFailed(run_, std::string(Message(decoded)), /*fatal=*/false);
      return;
    }
    desk.sums = sums_;
    desk.core->OnSum(sums_->attempt, sums_->after.step, digest);
  });
}

}  // namespace muster::internal
