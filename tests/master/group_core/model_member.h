#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/random.h"
#include "proto/messages/group_control.h"

namespace muster::testing {

/// A rule of the protocol is broken.
class Violation : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};
inline void Require(bool holds, const std::string& rule) {
  if (!holds) throw Violation(rule);
}

/// The sum of a step: which minibatches are in it, how often. Members add exactly, so it does not
/// depend on who computed what.
struct ModelSum {
  ShardId shard;
  std::map<uint32_t, int> minibatches;
  uint32_t digest() const {
    uint64_t hash = HashWords(shard.index.value(), minibatches.size());
    for (const auto& [index, times] : minibatches) {
      hash = HashWords(hash, index, static_cast<uint64_t>(times));
    }
    return static_cast<uint32_t>(hash);
  }
  friend bool operator==(const ModelSum&, const ModelSum&) = default;
};
/// The state of a model: the sums that made it, in order.
using ModelState = std::vector<ModelSum>;

struct ModelCapture {
  StateLabel label;
  uint32_t stripes = 0, stripe = 0;
  ModelState content;
  std::string object;
};

/// What lies outside of the master: the wire between members, and the store.
struct ModelFabric {
  using Key = std::tuple<LineageNumber, AttemptNumber, StepNumber>;
  struct Sum {
    std::map<std::string, std::pair<ShardId, std::set<uint32_t>>> parts;  // by member
  };
  std::map<Key, Sum> sums;
  std::map<std::string, ModelState> store;
};

/// A process of a worker, as docs/protocol.md, section 12, wants it; without threads, and with its
/// tensors replaced by what they were made of.
class ModelMember {
 public:
  ModelMember(std::string worker, uint64_t incarnation, uint32_t initial_digest)
      : worker(std::move(worker)), incarnation(incarnation), initial_digest(initial_digest) {}

  GroupExchangeRequest Report() {
    GroupExchangeRequest request;
    request.worker = worker;
    request.incarnation = incarnation;
    request.sequence = ++sequence;
    request.master_incarnation = reply.master_incarnation;
    request.news = reply.news;
    if (reply.standing == GroupStanding::kUnknown) {
      request.introduction = GroupIntroduction{
          {{"w", GroupDtype::kFloat32, 10, false, 0}}, initial_digest, {"unix:/" + worker}};
    }
    request.attempt = attempt;
    request.state = label;
    if (sum.has_value()) {
      request.sum = HeldSum{sum_attempt, label->step.Next(), sum->digest(), {}};
      request.sum->metrics.records = computed.size();
    }
    if (failed.has_value()) request.failed = failed;
    request.suspected = suspected;
    if (capture.has_value()) {
      request.capture =
          HeldCapture{capture->label, capture->stripes, {capture->stripe, 8, 1, capture->object}};
    }
    request.leaving = leaving;
    if (label.has_value()) request.digest = StateDigest{*label, Digest()};
    return request;
  }

  void Take(const GroupExchangeReply& news) {
    const auto number = [](const GroupExchangeReply& r) {
      return std::pair(r.master_incarnation, r.news);
    };
    if (number(news) <= number(reply)) return;
    const bool other_lineage = news.lineage != reply.lineage;
    // What is committed of the attempt before is applied first.
    if (!other_lineage) Apply(news);
    if (other_lineage) ChangeLineage(news);
    if (news.attempt != attempt || other_lineage) {
      sum.reset();
      failed.reset();
      suspected.clear();
      attempt = news.attempt;
    }
    const bool told = news.members.empty() && news.attempt == reply.attempt &&
                      news.standing == GroupStanding::kMember;
    const std::vector<GroupMember> members = told ? reply.members : news.members;
    reply = news;
    reply.members = members;
    if (reply.drop_state) {
      label.reset();
      sum.reset();
      capture.reset();
      initial_intact = false;
    }
    if (reply.initial_is_base && !label.has_value() && initial_intact) {
      label = StateLabel{reply.lineage, StepNumber(0)};
      state.clear();
    }
  }
  bool is_member() const { return reply.standing == GroupStanding::kMember; }
  /// Nobody has a state, and its initial one is overwritten.
  bool must_restart() const {
    const bool waits =
        reply.standing == GroupStanding::kWaiting || reply.standing == GroupStanding::kLearner;
    return waits && !label.has_value() && !initial_intact && reply.members.empty() &&
           !reply.source.has_value() && reply.step == StepNumber();
  }

  /// One piece of the trainer's work.
  void Work(ModelFabric* fabric) {
    Copy();
    Apply(reply);
    if (!is_member() || !reply.work.has_value() || attempt != reply.attempt) return;
    if (label != StateLabel{reply.lineage, reply.step}) return;
    if (failed.has_value() && failed->step == reply.work->step) return;
    failed.reset();
    Compute();
    auto& parts = fabric->sums[{reply.lineage, attempt, reply.work->step}].parts;
    parts[worker] = {reply.work->shard, computed};
    if (sum.has_value() || parts.size() < reply.members.size()) return;
    ModelSum all{reply.work->shard, {}};
    for (const auto& [member, part] : parts) {
      Require(part.first == reply.work->shard, "5: a sum is of one shard");
      for (const uint32_t minibatch : part.second) ++all.minibatches[minibatch];
    }
    sum = all;
    sum_attempt = attempt;
  }

  /// Copies its stripe, if it is asked for and has not gone on.
  void Copy() {
    if (!reply.capture.has_value() || !label.has_value()) return;
    const StateCapture& asked = *reply.capture;
    if (*label != StateLabel{reply.lineage, asked.step} || asked.attempt != attempt) return;
    // The stripe of the same state is the same stripe, whoever asked for it.
    const bool same = capture.has_value() && capture->label == *label &&
                      capture->stripes == asked.stripes && capture->stripe == reply.rank;
    if (same) return;
    capture = ModelCapture{*label, asked.stripes, reply.rank, state, ""};
    std::erase_if(kept, [&](const auto& one) { return one.first <= asked.step; });
  }
  void Store(ModelFabric* fabric) {
    if (!capture.has_value() || !reply.capture.has_value()) return;
    const StateCapture& asked = *reply.capture;
    if (asked.object_prefix.empty() || asked.step != capture->label.step ||
        asked.stripes != capture->stripes || capture->label.lineage != reply.lineage) {
      return;
    }
    capture->object = asked.object_prefix + std::to_string(capture->stripe);
    fabric->store[capture->object] = capture->content;
  }
  /// Sums that others applied are applied, too.
  void Replay(const ModelSum& of_next) { Step(of_next); }
  void Adopt(const StateLabel& of, ModelState content) {
    initial_intact = false;
    label = of;
    state = std::move(content);
    spoiled = 0;
    sum.reset();
  }

  std::string worker;
  uint64_t incarnation;
  uint32_t initial_digest;
  bool initial_intact = true;
  uint64_t sequence = 0;
  GroupExchangeReply reply;
  AttemptNumber attempt;
  std::optional<StateLabel> label;
  ModelState state;
  std::optional<ModelSum> sum;
  AttemptNumber sum_attempt;
  std::optional<FailedStep> failed;
  std::vector<SuspectedMember> suspected;
  std::optional<ModelCapture> capture;
  std::map<StepNumber, ModelSum> kept;
  bool leaving = false;
  /// Gradients that it has: of this step, shard and lineage.
  std::tuple<LineageNumber, StepNumber, ShardId> computed_of;
  std::set<uint32_t> computed;
  uint64_t computations = 0;
  /// Its state is another one than the sums make; 0: it is not.
  uint64_t spoiled = 0;

 private:
  uint64_t Digest() const {
    uint64_t hash = HashWords(state.size(), spoiled);
    for (const ModelSum& one : state) hash = HashWords(hash, one.digest());
    return hash;
  }
  void Apply(const GroupExchangeReply& news) {
    if (!sum.has_value() || !label.has_value() || label->lineage != news.lineage ||
        news.step != label->step.Next() || news.step_attempt != sum_attempt) {
      return;
    }
    Step(*std::exchange(sum, std::nullopt));
  }
  void Step(const ModelSum& of_next) {
    Copy();
    initial_intact = false;
    state.push_back(of_next);
    label->step = label->step.Next();
    if (reply.keep_sums) kept[label->step] = of_next;
  }
  void ChangeLineage(const GroupExchangeReply& news) {
    const bool same =
        label == StateLabel{reply.lineage, news.base} && news.lineage == reply.lineage.Next();
    if (same) label->lineage = news.lineage;
    if (!same && label.has_value()) {
      label.reset();
      state.clear();
    }
    capture.reset();
    kept.clear();
    computed.clear();
  }
  void Compute() {
    const std::tuple of(reply.lineage, reply.work->step, reply.work->shard);
    if (computed_of != of) computed.clear();
    computed_of = of;
    std::set<uint32_t> mine;
    for (const MinibatchSpan& span : reply.work->share.spans) {
      for (uint32_t i = 0; i < span.count; ++i) mine.insert(span.first.value() + i);
    }
    // A gradient that it has cannot be taken out of the sum again.
    if (!std::ranges::includes(mine, computed)) computed.clear();
    for (const uint32_t minibatch : mine) computations += computed.insert(minibatch).second;
  }
};

}  // namespace muster::testing
