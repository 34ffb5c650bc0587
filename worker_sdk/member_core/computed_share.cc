#include "worker_sdk/member_core/computed_share.h"

#include <algorithm>
#include <utility>

namespace muster::sdk {
namespace {

void Subtract(IntervalSet* from, const IntervalSet& what) {
  for (const auto& [begin, end] : what.intervals()) from->Remove(begin, end);
}

bool Contains(const IntervalSet& all, const IntervalSet& part) {
  IntervalSet rest = part;
  Subtract(&rest, all);
  return rest.empty();
}

}  // namespace

IntervalSet MinibatchesOf(std::span<const MinibatchSpan> share) {
  IntervalSet set;
  for (const MinibatchSpan& span : share) {
    uint64_t first = span.first.value();
    if (span.count > 0) set.Add(first, first + span.count);
  }
  return set;
}

void ComputedShare::Assign(const Key& key, std::span<const MinibatchSpan> share) {
  IntervalSet wanted = MinibatchesOf(share);
  IntervalSet begun = computed_;
  if (started_.has_value()) begun.Add(started_->value());
  if (key_ != key || !Contains(wanted, begun)) {
    Drop();
    key_ = key;
  }
  share_.assign(share.begin(), share.end());
  missing_ = wanted;
  Subtract(&missing_, computed_);
}

void ComputedShare::Drop() {
  key_.reset();
  ++number_;
  share_.clear();
  computed_ = missing_ = IntervalSet();
  started_.reset();
  metrics_ = ShardMetrics();
  pushed_under_ = RestoreEpoch();
  reported_ = 0;
}

bool ComputedShare::Start(StepRunNumber run, MinibatchIndex minibatch) {
  if (!Is(run) || !missing_.Contains(minibatch.value())) return false;
  started_ = minibatch;
  return true;
}

void ComputedShare::Computed(StepRunNumber run, MinibatchIndex minibatch) {
  if (!Is(run) || started_ != minibatch) return;
  started_.reset();
  computed_.Add(minibatch.value());
  missing_.Remove(minibatch.value(), minibatch.value() + 1);
}

void ComputedShare::Report(StepRunNumber run, ShardMetrics metrics, RestoreEpoch pushed_under) {
  if (!Is(run)) return;
  pushed_under_ = EarlierOf(pushed_under_, pushed_under);
  metrics_ = std::move(metrics);
  reported_ = computed_.count();
}

std::vector<MinibatchSpan> ComputedShare::Missing() const {
  std::vector<MinibatchSpan> spans;
  for (const auto& [begin, end] : missing_.intervals()) {
    spans.push_back(
        {MinibatchIndex(static_cast<uint32_t>(begin)), static_cast<uint32_t>(end - begin)});
  }
  return spans;
}

}  // namespace muster::sdk
