#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "master/group_core/group_core.h"
#include "tests/master/group_core/fake_data.h"
#include "tests/master/group_core/model_member.h"
#include "tests/support/seeds.h"

namespace muster {
namespace {

using testing::FakeData;
using testing::ModelCapture;
using testing::ModelFabric;
using testing::ModelMember;
using testing::ModelState;
using testing::ModelSum;
using testing::Require;

/// A core among model members, with a journal, a network that loses and delays, and processes that
/// die. After each sync, the journal is compared with what the members hold.
class GroupWorld {
 public:
  static constexpr uint64_t kWorkers = 4;

  explicit GroupWorld(uint64_t seed) : random_(seed), data_({}) {
    std::vector<uint32_t> minibatches;
    for (uint64_t i = 0; i < 12; ++i) minibatches.push_back(1 + Below(5));
    data_ = FakeData(minibatches);
    durable_data_ = data_;
    options_.members_min = 1 + Below(2);
    options_.members_max = 3 + Below(3);
    options_.kept_sums_max = 4;
    options_.checkpoint_interval = std::chrono::milliseconds(2'000 + Below(30'000));
    if (Chance(30)) options_.quotas = false;
    for (uint64_t i = 0; i < kWorkers; ++i) StartWorker(i);
    StartMaster();
  }

  void Run(int chaos_steps, int calm_steps) {
    for (int i = 0; i < chaos_steps && !Finished(); ++i) Step(true);
    for (uint64_t i = 0; i < kWorkers; ++i) paused_until_[i] = now_;
    if (core_ == nullptr) StartMaster();
    data_.closed = false;
    for (int i = 0; i < calm_steps && !Finished(); ++i) Step(false);
    Require(Finished(), "it does not end: " + Picture());
    CheckEnd();
  }

  struct Figures {
    uint64_t commits = 0, rollbacks = 0, attempts = 0, master_restarts = 0, checkpoints = 0,
             learned = 0, computed = 0, failed = 0;
  };
  Figures figures;

 private:
  uint64_t Below(uint64_t bound) { return random_.Below(bound); }
  bool Chance(uint64_t percent) { return Below(100) < percent; }
  static std::string NameOf(uint64_t i) { return "worker-" + std::to_string(i); }
  bool Finished() const { return core_ != nullptr && durable_data_.over; }

  void StartWorker(uint64_t i) {
    // Without a seed, every process has other initial values.
    const auto digest = static_cast<uint32_t>(Chance(50) ? 7 : Below(1'000));
    members_[i] = std::make_unique<ModelMember>(NameOf(i), ++incarnations_, digest);
    parked_[i] = false;
  }
  void StartMaster() {
    ++master_incarnation_;
    data_ = durable_data_;
    data_.incarnation = MasterIncarnation(master_incarnation_);
    data_.tokens = 0;
    core_ = std::make_unique<GroupCore>(options_, data_.incarnation, durable_, &data_, now_);
    for (bool& parked : parked_) parked = false;
    ++figures.master_restarts;
  }

  /// The journal has what the core decided; only now answers leave.
  void Sync() {
    std::vector<GroupMutation> mutations;
    core_->Collect(&mutations);
    for (const GroupMutation& mutation : mutations) Journal(mutation);
    for (const std::string& object : core_->TakeUnusedObjects()) {
      Require(
          !durable_.checkpoint.has_value() ||
              std::ranges::none_of(durable_.checkpoint->stripes,
                                   [&](const StateStripe& one) { return one.object == object; }),
          "10: a stripe of the checkpoint is deleted");
      fabric_.store.erase(object);
    }
    data_.events.clear();
    durable_data_ = data_;
    CheckJournal();
    for (uint64_t i = 0; i < kWorkers; ++i) {
      if (!parked_[i] || members_[i] == nullptr) continue;
      const ModelMember& member = *members_[i];
      const uint64_t news = core_->NewsFor(member.worker, member.incarnation);
      const bool same_master = asked_[i].master_incarnation == data_.incarnation;
      if (same_master && news <= asked_[i].news && !Chance(5)) continue;
      GroupExchangeReply reply = core_->ReplyFor(member.worker, member.incarnation);
      CheckReply(reply);
      net_.push_back({i, member.incarnation, std::move(reply)});
      parked_[i] = false;
    }
  }
  void Journal(const GroupMutation& mutation) {
    if (const auto* group = std::get_if<GroupRecord>(&mutation)) {
      const auto& before = durable_.group;
      Require(!before.has_value() || before->attempt <= group->attempt, "2: attempts grow");
      if (before.has_value() && before->attempt == group->attempt) {
        Require(before->members == group->members, "2: an attempt has other members");
      } else {
        ++figures.attempts;
      }
    }
    if (const auto* step = std::get_if<StepRecord>(&mutation)) JournalStep(*step);
    if (const auto* checkpoint = std::get_if<CheckpointRecord>(&mutation)) {
      ++figures.checkpoints;
      for (const StateStripe& stripe : checkpoint->stripes) {
        const ModelState& stored = fabric_.store.at(stripe.object);
        Require(checkpoint->label.lineage == lineage_number_ &&
                    checkpoint->label.step.value() <= lineage_.size(),
                "10: a checkpoint of another lineage");
        Require(stored == ModelState(lineage_.begin(),
                                     lineage_.begin() + static_cast<std::ptrdiff_t>(
                                                            checkpoint->label.step.value())),
                "10: a stripe of the checkpoint has another state");
      }
    }
    Apply(mutation, &durable_);
  }
  void JournalStep(const StepRecord& step) {
    if (step.lineage != lineage_number_) {
      const uint64_t stored =
          durable_.checkpoint.has_value() ? durable_.checkpoint->label.step.value() : 0;
      Require(step.step.value() <= lineage_.size() && step.step.value() >= stored,
              "11: a rollback below the checkpoint");
      if (lineage_number_ != LineageNumber()) ++figures.rollbacks;
      lineage_.resize(step.step.value());
      lineage_number_ = step.lineage;
      return;
    }
    ++figures.commits;
    Require(step.step.value() == lineage_.size() + 1, "1: steps follow each other");
    const ModelFabric::Sum& sum = fabric_.sums[{step.lineage, step.attempt, step.step}];
    ModelSum all{step.shard, {}};
    for (const auto& [worker, part] : sum.parts) {
      Require(part.first == step.shard, "4: a member summed another shard");
      for (const uint32_t minibatch : part.second) ++all.minibatches[minibatch];
    }
    Require(all.minibatches.size() == data_.minibatches[step.shard.index.value()],
            "3: a minibatch is in no share");
    for (const auto& [minibatch, times] : all.minibatches) {
      Require(times == 1, "3: a minibatch is in two shares");
    }
    Require(all.digest() == step.digest, "4: the digest is that of the sum");
    lineage_.push_back(std::move(all));
  }
  /// Steps and data are one.
  void CheckJournal() {
    std::vector<uint64_t> shards;
    const uint64_t stored =
        durable_.checkpoint.has_value() ? durable_.checkpoint->label.step.value() : 0;
    for (uint64_t i = stored; i < lineage_.size(); ++i) {
      shards.push_back(lineage_[i].shard.index.value());
    }
    Require(shards == durable_data_.done, "the DONE shards are not the steps after the checkpoint");
  }
  void CheckReply(const GroupExchangeReply& reply) {
    const GroupRecord journaled = durable_.group.value_or(GroupRecord());
    const StepRecord step = durable_.step.value_or(StepRecord());
    Require(reply.attempt <= journaled.attempt && reply.lineage <= journaled.lineage,
            "2: told before it is journaled");
    Require(reply.step == step.step && reply.step_attempt == step.attempt,
            "1: a step is told before it is journaled");
    // Who works for the attempt has been told.
    if (!reply.work.has_value() || reply.members.empty()) return;
    Require(reply.members.size() <= options_.members_max &&
                reply.members.size() >= options_.members_min,
            "16: the number of members");
  }
  void CheckMembers() {
    for (const auto& member : members_) {
      if (member == nullptr || !member->label.has_value()) continue;
      if (member->label->lineage != lineage_number_) continue;
      const uint64_t step = member->label->step.value();
      Require(step <= lineage_.size(), "1: a member is ahead of the journal");
      Require(std::equal(member->state.begin(), member->state.end(), lineage_.begin(),
                         lineage_.begin() + static_cast<std::ptrdiff_t>(step)),
              "8: " + member->worker + " has another state than the journal");
    }
  }

  void Step(bool chaos) {
    now_ += std::chrono::milliseconds(Below(chaos && Chance(1) ? 3'000 : 40));
    const uint64_t i = Below(kWorkers);
    const uint64_t what = Below(100);
    if (chaos && Chance(2)) return Harm(i);
    if (core_ == nullptr) {
      if (Chance(20)) StartMaster();
    } else if (what < 10) {
      core_->Tick(now_);
      if (!chaos || Chance(90)) Sync();
    } else if (what < 15) {
      data_.closed = chaos && Chance(10);
      core_->Tick(now_);
    }
    if (what >= 15 && what < 45) Deliver(chaos);
    if (members_[i] == nullptr) {
      if (Chance(20)) StartWorker(i);
    } else if (now_ >= paused_until_[i]) {
      Act(i, chaos);
    }
    CheckMembers();
  }
  void Act(uint64_t i, bool chaos) {
    ModelMember& member = *members_[i];
    if (member.leaving && member.reply.standing == GroupStanding::kWaiting) return Kill(i);
    if (member.must_restart()) return Kill(i);
    const uint64_t what = Below(100);
    if (what < 40) {
      const uint64_t before = member.computations;
      member.Work(&fabric_);
      figures.computed += member.computations - before;
    } else if (what < 55) {
      Learn(&member);
    } else if (what < 65) {
      member.Store(&fabric_);
    } else if (chaos && what < 66 && member.is_member() && member.reply.work.has_value()) {
      if (Chance(50)) {
        member.failed = FailedStep{member.attempt, member.reply.work->step, "NaN", false};
      } else {
        const GroupMember& other = member.reply.members[Below(member.reply.members.size())];
        member.suspected = {{other.worker, other.incarnation, "it does not answer"}};
      }
    } else {
      Call(i, chaos);
    }
  }
  void Call(uint64_t i, bool chaos) {
    GroupExchangeRequest request = members_[i]->Report();
    if (core_ == nullptr || (chaos && Chance(5))) return;
    const absl::Status taken = core_->Exchange(request, now_);
    if (absl::IsFailedPrecondition(taken)) {
      members_[i] = nullptr;  // it must exit
      return;
    }
    Require(taken.ok(), std::string(taken.message()));
    asked_[i] = std::move(request);
    parked_[i] = true;
    if (!chaos || Chance(80)) Sync();
  }
  void Deliver(bool chaos) {
    if (net_.empty()) return;
    const size_t at = Chance(60) ? 0 : Below(net_.size());
    const auto [i, incarnation, reply] = net_[at];
    if (!chaos || Chance(95)) net_.erase(net_.begin() + static_cast<std::ptrdiff_t>(at));
    if (chaos && Chance(5)) return;
    if (members_[i] == nullptr || members_[i]->incarnation != incarnation) return;
    members_[i]->Take(reply);
  }
  /// A learner copies a captured state, and anybody who is behind fetches sums.
  void Learn(ModelMember* member) {
    if (member->is_member() || member->reply.standing == GroupStanding::kLearner) {
      if (FetchSum(member)) return;
    }
    const std::optional<StateSource>& source = member->reply.source;
    if (!source.has_value() || member->reply.standing != GroupStanding::kLearner) return;
    if (member->label.has_value() && member->label->lineage == source->label.lineage &&
        member->label->step >= source->label.step) {
      return;
    }
    std::optional<ModelState> content;
    for (size_t stripe = 0; stripe < source->stripes.size(); ++stripe) {
      std::optional<ModelState> piece = PieceOf(*source, stripe);
      if (!piece.has_value()) return;
      Require(!content.has_value() || *content == *piece, "8: stripes of different states");
      content = std::move(piece);
    }
    if (!content.has_value()) return;
    ++figures.learned;
    member->Adopt(source->label, *std::move(content));
  }
  std::optional<ModelState> PieceOf(const StateSource& source, size_t stripe) {
    for (const auto& other : members_) {
      if (other == nullptr || other->worker != source.holders[stripe].worker ||
          other->incarnation != source.holders[stripe].incarnation || !other->capture.has_value()) {
        continue;
      }
      const ModelCapture& capture = *other->capture;
      if (capture.label == source.label && capture.stripe == stripe) return capture.content;
    }
    const auto stored = fabric_.store.find(source.stripes[stripe].object);
    if (stored == fabric_.store.end()) return std::nullopt;
    return stored->second;
  }
  bool FetchSum(ModelMember* member) {
    if (!member->label.has_value() || member->label->lineage != member->reply.lineage ||
        member->label->step >= member->reply.step || member->sum.has_value()) {
      return false;
    }
    for (const GroupMember& holder : member->reply.members) {
      for (const auto& other : members_) {
        if (other == nullptr || other->incarnation != holder.incarnation ||
            !other->label.has_value() || other->label->lineage != member->label->lineage) {
          continue;
        }
        const auto sum = other->kept.find(member->label->step.Next());
        if (sum == other->kept.end()) continue;
        member->Replay(sum->second);
        return true;
      }
    }
    return false;
  }

  void Harm(uint64_t i) {
    const uint64_t what = Below(100);
    if (what < 20 && core_ != nullptr) {
      core_ = nullptr;
    } else if (what < 60 && members_[i] != nullptr) {
      Kill(i);
    } else if (what < 64) {
      for (uint64_t other = 0; other < kWorkers; ++other) {
        if (members_[other] != nullptr) Kill(other);
      }
    } else if (what < 80) {
      paused_until_[i] = now_ + std::chrono::milliseconds(Below(12'000));
    } else if (what < 84 && members_[i] != nullptr) {
      members_[i]->leaving = true;
    } else if (what < 86 && core_ != nullptr) {
      core_->Drain(NameOf(i), true, now_);
      if (members_[i] != nullptr) members_[i]->leaving = true;
    }
  }
  void Kill(uint64_t i) {
    const std::unique_ptr<ModelMember> dead = std::move(members_[i]);
    if (core_ == nullptr || Chance(20)) return;  // nobody tells
    const LeaseToken token = dead->reply.work.has_value() ? dead->reply.work->token : LeaseToken();
    if (Chance(20)) {
      core_->Crashed(dead->worker, dead->incarnation, token, "crashed with signal 11", now_);
    } else {
      core_->Gone(dead->worker, dead->incarnation, now_);
    }
  }

  void CheckEnd() {
    figures.failed += data_.CountOf(FakeData::State::kFailed);
    Require(data_.failed_with.empty(), "the job failed: " + data_.failed_with);
    Require(data_.CountOf(FakeData::State::kCommitted) == lineage_.size(),
            "each step has one shard");
    std::vector<bool> seen(data_.minibatches.size());
    for (const ModelSum& sum : lineage_) {
      Require(!seen[sum.shard.index.value()], "a shard is in two steps");
      seen[sum.shard.index.value()] = true;
    }
  }
  std::string Picture() const {
    std::string text = "step " + std::to_string(lineage_.size());
    if (core_ == nullptr) return text;
    const GroupCore::View view = core_->Show();
    text += ", attempt " + std::to_string(view.attempt.value()) + ", " + view.waits;
    for (const auto& one : view.processes) {
      text += "; " + one.worker + " standing " + std::to_string(static_cast<int>(one.standing)) +
              " " + one.waits + " state " +
              (one.state.has_value() ? std::to_string(one.state->lineage.value()) + "/" +
                                           std::to_string(one.state->step.value())
                                     : "none");
    }
    for (const auto& member : members_) {
      if (member == nullptr) continue;
      text += "; " + member->worker + " has attempt " + std::to_string(member->attempt.value()) +
              (member->sum.has_value() ? ", a sum of " + std::to_string(member->sum_attempt.value())
                                       : "") +
              (member->failed.has_value() ? ", failed" : "") +
              (member->reply.work.has_value() ? ", work" : "") + ", news " +
              std::to_string(member->reply.news);
    }
    return text;
  }

  Rng random_;
  TimePoint now_{};
  GroupOptions options_;
  FakeData data_, durable_data_{{}};
  GroupRecords durable_;
  /// The steps of the journal, and what they were made of.
  LineageNumber lineage_number_;
  ModelState lineage_;
  std::unique_ptr<GroupCore> core_;
  uint64_t master_incarnation_ = 0, incarnations_ = 0;
  std::unique_ptr<ModelMember> members_[kWorkers];
  TimePoint paused_until_[kWorkers] = {};
  bool parked_[kWorkers] = {};
  GroupExchangeRequest asked_[kWorkers];
  struct Message {
    uint64_t to;
    uint64_t incarnation;
    GroupExchangeReply reply;
  };
  std::vector<Message> net_;
  ModelFabric fabric_;
};

/// Whatever dies, every step has each of its minibatches once, all who have a state have that of
/// the journal, and the job ends.
TEST(GroupRandomTest, NothingIsLostOrDoubled) {
  GroupWorld::Figures all;
  for (uint64_t seed = 1; seed <= testing::Seeds(400); ++seed) {
    GroupWorld world(seed);
    try {
      world.Run(3'000, 60'000);
    } catch (const std::exception& broken) {
      FAIL() << "seed " << seed << ": " << broken.what();
    }
    all.commits += world.figures.commits;
    all.rollbacks += world.figures.rollbacks;
    all.attempts += world.figures.attempts;
    all.master_restarts += world.figures.master_restarts;
    all.checkpoints += world.figures.checkpoints;
    all.learned += world.figures.learned;
    all.failed += world.figures.failed;
  }
  // The schedules reach all of it.
  EXPECT_GT(all.rollbacks, 0u);
  EXPECT_GT(all.checkpoints, 0u);
  EXPECT_GT(all.learned, 0u);
  EXPECT_GT(all.failed, 0u);
  std::printf(
      "%llu steps, %llu rollbacks, %llu attempts, %llu masters, %llu checkpoints, %llu "
      "copies, %llu shards failed\n",
      static_cast<unsigned long long>(all.commits), static_cast<unsigned long long>(all.rollbacks),
      static_cast<unsigned long long>(all.attempts),
      static_cast<unsigned long long>(all.master_restarts),
      static_cast<unsigned long long>(all.checkpoints),
      static_cast<unsigned long long>(all.learned), static_cast<unsigned long long>(all.failed));
}

}  // namespace
}  // namespace muster
