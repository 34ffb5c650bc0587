#include "worker_sdk/member_core/outer_loop.h"

#include <algorithm>
#include <cmath>

namespace muster::sdk {
namespace {

void Copy(std::span<const float> from, std::span<float> to) {
  std::ranges::copy(from, to.begin());
}

}  // namespace

std::string OuterLoop::OptionsText() const {
  return fmt::format("{}, {} fragments, mixing {}, members {}", TextOf(options_.optimizer),
                     options_.fragments, options_.mixing, options_.members);
}

void OuterLoop::AddWeights(std::string_view name, std::span<float> working) {
  weights_.push_back({.name = std::string(name), .working = working});
}

void OuterLoop::AddMean(std::string_view name, std::span<float> working) {
  means_.push_back({.name = std::string(name), .working = working});
}

absl::Status OuterLoop::Close() {
  MUSTER_RETURN_IF_ERROR(CheckOptimizer(options_.optimizer));
  const uint32_t fragments = options_.fragments;
  if (fragments < 1 || fragments > std::min<size_t>(weights_.size(), kFragmentsMax)) {
    return absl::InvalidArgumentError(
        fmt::format("there are {} fragments and {} pieces of weights: use 1 to {} fragments, and a "
                    "piece for each at least",
                    fragments, weights_.size(), kFragmentsMax));
  }
  if (!(options_.mixing >= 0 && options_.mixing < 1)) {
    return absl::InvalidArgumentError(
        fmt::format("mixing is {}; use a number from 0 to below 1", options_.mixing));
  }
  if (options_.members > kMembersMax) {
    return absl::InvalidArgumentError(
        fmt::format("members is {}; use a number from 0 to {}", options_.members, kMembersMax));
  }
  const uint32_t moments = MomentsOf(options_.optimizer.kind);
  for (std::vector<Piece>* pieces : {&weights_, &means_}) {
    for (Piece& piece : *pieces) {
      if (piece.working.empty()) {
        return absl::InvalidArgumentError(
            fmt::format("the weights \"{}\" have no elements; leave them out", piece.name));
      }
      if (piece.working.data() == nullptr) {
        return absl::InvalidArgumentError(
            fmt::format("the weights \"{}\" are a null pointer", piece.name));
      }
      piece.shared.assign(piece.working.begin(), piece.working.end());
    }
  }
  for (Piece& piece : weights_) {
    if (moments > 0) piece.first.resize(piece.shared.size());
    if (moments > 1) piece.second.resize(piece.shared.size());
    if (HasOwnWeights()) piece.kept = piece.shared;
    if (options_.mixing > 0) piece.base = piece.shared;
  }
  return absl::OkStatus();
}

std::vector<OuterLoop::State> OuterLoop::SharedState() {
  std::vector<State> state;
  for (Piece& piece : weights_) {
    state.push_back({piece.name, piece.shared});
    if (!piece.first.empty()) state.push_back({piece.name + "/first-moment", piece.first});
    if (!piece.second.empty()) state.push_back({piece.name + "/second-moment", piece.second});
  }
  for (Piece& piece : means_) state.push_back({piece.name, piece.shared});
  return state;
}

std::vector<OuterLoop::Slot> OuterLoop::Slots() const {
  std::vector<Slot> slots;
  for (size_t i = 0; i < weights_.size(); ++i) {
    if (i % options_.fragments == 0) {
      slots.push_back({fmt::format("outer-{}/change", slots.size()), 0, false});
    }
    slots.back().elements = std::max<uint64_t>(slots.back().elements, weights_[i].shared.size());
  }
  for (const Piece& piece : means_) {
    slots.push_back({piece.name + "/sum", piece.shared.size(), true});
  }
  return slots;
}

OuterLoop::Piece* OuterLoop::InFragment(size_t slot) {
  const size_t piece = slot * options_.fragments + fragment();
  return piece < weights_.size() ? &weights_[piece] : nullptr;
}

void OuterLoop::BeginRun(LineageNumber lineage, StepRunNumber run) {
  if (run == run_) return;
  ShowShared();
  run_ = run;
  lineage_ = lineage;
  const bool own = own_ == std::pair(lineage, updates_[0]);
  for (Piece& piece : weights_) {
    if (own) {
      Copy(piece.kept, piece.working);
    } else if (!piece.base.empty()) {
      Copy(piece.shared, piece.base);
    }
  }
}

std::span<const float> OuterLoop::Contribution(uint32_t slot) {
  if (slot >= weight_slots()) return means_[slot - weight_slots()].working;
  size_t elements = 0;
  for (size_t i = 0; i < options_.fragments; ++i) {
    const size_t piece = slot * options_.fragments + i;
    if (piece < weights_.size()) elements = std::max(elements, weights_[piece].shared.size());
  }
  scratch_.assign(elements, 0);
  if (const Piece* piece = InFragment(slot)) {
    Difference(piece->base.empty() ? piece->shared : piece->base, piece->working,
               std::span(scratch_).first(piece->shared.size()));
  }
  return scratch_;
}

std::string OuterLoop::WhatIn(uint32_t slot) {
  if (slot >= weight_slots()) {
    return fmt::format("the values of \"{}\"", means_[slot - weight_slots()].name);
  }
  const Piece* const piece = InFragment(slot);
  return piece == nullptr ? "" : fmt::format("the change of the weights \"{}\"", piece->name);
}

void OuterLoop::Apply(Part part, float count, const SumOf& sum) {
  const float divisor = options_.members == 0 ? count : static_cast<float>(options_.members);
  const uint64_t update = static_cast<uint64_t>(updates_[0]) / options_.fragments + 1;
  for (uint32_t slot = 0; slot < weight_slots(); ++slot) {
    Piece* const piece = InFragment(slot);
    if (piece == nullptr) continue;
    UpdateOuter(options_.optimizer, update, sum(slot), divisor,
                {piece->shared, piece->first, piece->second});
  }
  for (uint32_t i = 0; i < means_.size(); ++i) {
    const std::span<const float> values = sum(static_cast<uint32_t>(weight_slots()) + i);
    for (size_t k = 0; k < values.size(); ++k) means_[i].shared[k] = values[k] / count;
  }
  const bool own = part == Part::kOwn && HasOwnWeights();
  if (own) KeepOwn();
  ++updates_[0];
  own_.reset();
  if (own) own_.emplace(lineage_, updates_[0]);
  ShowShared();
}

void OuterLoop::KeepOwn() {
  for (size_t i = 0; i < weights_.size(); ++i) {
    Piece& piece = weights_[i];
    if (i % options_.fragments != fragment()) {
      Copy(piece.working, piece.kept);
    } else if (options_.mixing > 0) {
      Mix(options_.mixing, piece.working, piece.shared, piece.kept);
      Copy(piece.kept, piece.base);
    } else {
      Copy(piece.shared, piece.kept);
    }
  }
}

void OuterLoop::ShowShared() {
  run_ = 0;
  for (std::vector<Piece>* pieces : {&weights_, &means_}) {
    for (Piece& piece : *pieces) Copy(piece.shared, piece.working);
  }
}

}  // namespace muster::sdk
