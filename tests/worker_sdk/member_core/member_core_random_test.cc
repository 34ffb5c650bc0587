#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "tests/support/seeds.h"
#include "tests/worker_sdk/member_core/group_process.h"

/// Several members against a small master, on a random schedule: lost, doubled and late messages,
/// members and masters that die, members that are taken for dead, broken connections, steps that a
/// trainer fails. What every process has must be what the journal says, and the job must end.
namespace muster::sdk {
namespace {

using Probes = GroupProcess::Probes;
constexpr int kWorkers = 3;

class GroupWorld {
 public:
  GroupWorld(uint64_t seed, MasterBug bug) : rng_(seed), master_(bug) {
    for (int w = 0; w < kWorkers; ++w) Start(w);
  }

  /// Empty: every process agreed with the journal, and the job has ended.
  std::string Run() {
    for (int i = 0; i < 3000 && wrong_.empty() && !master_.finished(); ++i) Step(/*faults=*/true);
    network_.clear();
    for (int i = 0; i < 40000 && wrong_.empty() && !master_.finished(); ++i) Step(false);
    if (!wrong_.empty()) return wrong_;
    return master_.finished() ? "" : "the job does not end: " + Picture();
  }
  const Probes& probes() const { return probes_; }
  uint64_t lineage() const { return master_.journal.lineage; }

 private:
  struct ToMaster {
    GroupExchangeRequest request;
  };
  struct ToMember {
    ProcessName name;
    GroupExchangeReply reply;
  };
  using Message = std::variant<ToMaster, ToMember>;

  /// The last worker makes another initial state than the others.
  void Start(int w) {
    processes_[w] = std::make_unique<GroupProcess>("worker-" + std::to_string(w), ++incarnations_,
                                                   w == kWorkers - 1 ? 8 : 7);
  }
  bool Chance(double probability) { return rng_.Uniform() < probability; }
  GroupProcess& Any() { return *processes_[rng_.Below(kWorkers)]; }

  void Step(bool faults) {
    now_ += std::chrono::milliseconds(10);
    if (faults && Chance(0.02)) Fault();
    switch (rng_.Below(8)) {
      case 0:
      case 1:
        Deliver(faults);
        break;
      case 2:
        Exchange(Any());
        break;
      case 3:
        master_.Tick(Chance(0.2));
        if (master_.waits_for_rollback() && Chance(0.05)) master_.Rollback();
        for (const ProcessName& name : master_.Known()) {
          if (Chance(0.3)) Send(ToMember{name, master_.ReplyFor(name)});
        }
        break;
      case 4:
        Any().SumStep(&fabric_, faults && Chance(0.02), &probes_);
        break;
      case 5:
        TransferAndCapture(faults);
        break;
      default:
        Any().TrainerStep(faults && Chance(0.01), &probes_);
    }
    for (int w = 0; w < kWorkers; ++w) {
      if (!processes_[w]->wants_restart()) continue;
      master_.Gone(processes_[w]->name());
      Start(w);
    }
    Check();
  }

  void TransferAndCapture(bool faults) {
    std::vector<GroupProcess*> all;
    for (const auto& process : processes_) all.push_back(process.get());
    Any().TransferStep(all, master_.StateAfter(master_.journal.checkpoint), faults && Chance(0.1),
                       now_, &rng_, &probes_);
    Any().CaptureStep(now_, &probes_);
  }

  void Fault() {
    switch (rng_.Below(4)) {
      case 0:
        master_.Restart();
        break;
      case 1: {
        auto w = static_cast<int>(rng_.Below(kWorkers));
        // Its supervisor says so, or its next process will.
        if (Chance(0.7)) master_.Gone(processes_[w]->name());
        Start(w);
        break;
      }
      case 2:
        master_.Suspect(Any().name());
        break;
      default:
        if (!Chance(0.1)) break;
        for (int w = 0; w < kWorkers; ++w) {
          master_.Gone(processes_[w]->name());
          if (Chance(0.7)) Start(w);
        }
    }
  }

  void Exchange(GroupProcess& process) {
    if (process.core().request_changed() || Chance(0.2)) Send(ToMaster{process.core().Request()});
  }

  void Send(Message message) {
    if (network_.size() < 60) network_.push_back(std::move(message));
  }

  void Deliver(bool faults) {
    if (network_.empty()) return;
    size_t index = Chance(0.5) ? rng_.Below(network_.size()) : 0;
    Message message = network_[index];
    bool again = faults && Chance(0.1);
    if (!again) network_.erase(network_.begin() + static_cast<std::ptrdiff_t>(index));
    if (faults && Chance(0.07)) return;
    if (auto* call = std::get_if<ToMaster>(&message)) {
      std::string wrong = master_.OnRequest(call->request, fabric_);
      if (wrong_.empty()) wrong_ = wrong;
      ProcessName name{call->request.worker, call->request.incarnation};
      Send(ToMember{name, master_.ReplyFor(name)});
      for (auto& [told, reply] : master_.told_too_early) Send(ToMember{told, reply});
      if (!master_.told_too_early.empty() && Chance(0.5)) master_.Restart();
      master_.told_too_early.clear();
      return;
    }
    auto& answer = std::get<ToMember>(message);
    for (const auto& process : processes_) {
      if (process->name() != answer.name) continue;
      std::optional<StateLabel> before = process->core().state();
      process->core().OnReply(answer.reply);
      const std::optional<StateLabel>& after = process->core().state();
      if (before.has_value() && after.has_value() && before != after) ++probes_.relabelled;
    }
  }

  std::string Picture() const {
    const SmallGroupMaster::Journal& journal = master_.journal;
    std::string text = "lineage " + std::to_string(journal.lineage) + ", attempt " +
                       std::to_string(journal.attempt) + ", step " +
                       std::to_string(master_.newest()) + ", base " + std::to_string(journal.base) +
                       ", checkpoint " + std::to_string(journal.checkpoint) + ", members";
    for (const ProcessName& member : journal.members) {
      text += " " + member.first + "/" + std::to_string(member.second);
    }
    for (const auto& process : processes_) {
      const MemberCore& core = process->core();
      const std::optional<StateLabel>& state = core.state();
      text += "; " + process->name().first + "/" + std::to_string(process->name().second) +
              " phase " + std::to_string(static_cast<int>(core.phase())) + " standing " +
              std::to_string(static_cast<int>(core.view().standing)) + " view attempt " +
              ToString(core.attempt()) + " state " +
              (state.has_value() ? ToString(state->lineage) + "." + ToString(state->step) : "none");
    }
    return text;
  }

  void Check() {
    if (!wrong_.empty()) return;
    for (const auto& process : processes_) {
      const std::optional<StateLabel>& label = process->core().state();
      const ModelState* state = process->StableState();
      if (!label.has_value() || state == nullptr) continue;
      if (label->lineage.value() != master_.journal.lineage) continue;
      const std::string& worker = process->name().first;
      if (label->step.value() > master_.newest()) {
        wrong_ = worker + " is ahead of the journal";
      } else if (*state != master_.StateAfter(label->step.value())) {
        wrong_ = worker + " differs from the journal at step " + ToString(label->step);
      }
    }
  }

  Rng rng_;
  SmallGroupMaster master_;
  TimePoint now_{};
  uint64_t incarnations_ = 0;
  std::unique_ptr<GroupProcess> processes_[kWorkers];
  std::deque<Message> network_;
  Fabric fabric_;
  std::string wrong_;
  Probes probes_;
};

TEST(MemberCoreRandomTest, EveryProcessAgreesWithTheJournal) {
  Probes total;
  uint64_t rollbacks = 0;
  const uint64_t seeds = muster::testing::Seeds(300);
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    GroupWorld world(seed, MasterBug::kNone);
    ASSERT_EQ(world.Run(), "") << "seed " << seed;
    const Probes& probes = world.probes();
    total.applied += probes.applied;
    total.replayed += probes.replayed;
    total.copied += probes.copied;
    total.kept_runs += probes.kept_runs;
    total.failed += probes.failed;
    total.suspected += probes.suspected;
    total.missing += probes.missing;
    total.restarts += probes.restarts;
    total.relabelled += probes.relabelled;
    total.captured += probes.captured;
    rollbacks += world.lineage() - 1;
  }
  // The schedules reached what they are for.
  EXPECT_GT(total.applied, 0);
  EXPECT_GT(total.replayed, 0);
  EXPECT_GT(total.copied, 0);
  EXPECT_GT(total.kept_runs, 0);
  EXPECT_GT(total.failed, 0);
  EXPECT_GT(total.suspected, 0);
  EXPECT_GT(total.missing, 0);
  EXPECT_GT(total.restarts, 0);
  EXPECT_GT(total.relabelled, 0);
  EXPECT_GT(total.captured, 0);
  EXPECT_GT(rollbacks, 0u);
}

bool Found(MasterBug bug) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    if (!GroupWorld(seed, bug).Run().empty()) return true;
  }
  return false;
}

TEST(MemberCoreRandomTest, AMasterThatTellsBeforeItJournalsIsFoundOut) {
  EXPECT_TRUE(Found(MasterBug::kTellFirst));
}

TEST(MemberCoreRandomTest, AMasterThatUsesAnAttemptAgainIsFoundOut) {
  EXPECT_TRUE(Found(MasterBug::kSameAttempt));
}

TEST(MemberCoreRandomTest, AMasterThatCommitsWithoutTheStepsAttemptIsFoundOut) {
  EXPECT_TRUE(Found(MasterBug::kNamesNewestAttempt));
}

}  // namespace
}  // namespace muster::sdk
