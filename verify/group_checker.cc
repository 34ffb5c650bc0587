#include "verify/group_checker.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace muster::verify {
namespace {

std::string ToText(const ProcessName& process) {
  return fmt::format("{} (start {})", process.node, process.start);
}

/// Samples of one kind.
class Samples {
 public:
  explicit Samples(std::vector<std::string>* texts) : texts_(texts) {}
  void Add(std::string text) {
    if (count_++ < GroupVerdict::kSamplesMax) texts_->push_back(std::move(text));
  }

 private:
  std::vector<std::string>* texts_;
  size_t count_ = 0;
};

/// The digest of the state after each step. Members that disagree are told.
std::map<uint64_t, uint64_t> DigestsOf(const StepLog& steps, GroupVerdict* verdict) {
  std::map<uint64_t, uint64_t> digests;
  Samples samples(&verdict->wrong);
  for (const auto& [process, applied] : steps.all()) {
    const auto [known, first] = digests.try_emplace(applied.step, applied.digest);
    if (first || known->second == applied.digest) continue;
    samples.Add(fmt::format("undisturbed run: {} has other weights after step {} than another one",
                            ToText(process), applied.step));
  }
  return digests;
}

void CompareSteps(const GroupRun& undisturbed, const StepLog& steps, GroupVerdict* verdict) {
  const std::map<uint64_t, uint64_t> digests = DigestsOf(undisturbed.steps, verdict);
  Samples samples(&verdict->wrong);
  for (const auto& [process, applied] : steps.all()) {
    ++verdict->compared;
    const auto right = digests.find(applied.step);
    if (right != digests.end() && right->second == applied.digest) continue;
    ++verdict->different;
    samples.Add(fmt::format("{} has other weights after step {} than the undisturbed run",
                            ToText(process), applied.step));
  }
  if (verdict->steps != undisturbed.steps.newest()) {
    verdict->wrong.push_back(fmt::format("the job made {} steps, the undisturbed run made {}",
                                         verdict->steps, undisturbed.steps.newest()));
  }
}

/// Whether a process was at the last step, by its own history or by its state: what a mistake has
/// changed may be the number of steps in the state.
bool AtTheEnd(const GroupRun& run, const FinalState& final) {
  const uint64_t last = run.steps.newest();
  return run.steps.LastOf(final.process) == last || final.state.step_count() == last;
}

/// Rows of `ids` that differ, and one more if any other bit does.
uint64_t Differences(const GroupState& a, const GroupState& b) {
  uint64_t count = a == b ? 0 : 1;
  for (size_t id = 0; id < a.ids().size(); ++id) count += a.ids()[id] == b.ids()[id] ? 0 : 1;
  return count;
}

/// Of the states after the last step the one that is the least like `right`; without it, the first.
const GroupState* StateUnlike(const GroupState* right, const GroupRun& run) {
  const GroupState* chosen = nullptr;
  uint64_t most = 0;
  for (const FinalState& final : run.finals) {
    if (!AtTheEnd(run, final)) continue;
    const uint64_t count = right == nullptr ? 0 : Differences(final.state, *right);
    if (chosen == nullptr || count > most) chosen = &final.state;
    most = std::max(most, count);
  }
  return chosen;
}

void CompareFinals(const GroupRun& undisturbed, const GroupRun& disturbed, GroupVerdict* verdict) {
  const GroupState* const right = StateUnlike(nullptr, undisturbed);
  if (right == nullptr) {
    verdict->wrong.emplace_back(
        "no member of the undisturbed run had the weights of its last step");
    return;
  }
  for (const FinalState& final : undisturbed.finals) {
    if (!AtTheEnd(undisturbed, final) || final.state == *right) continue;
    verdict->wrong.push_back(fmt::format(
        "undisturbed run: {} ended with other weights than another one", ToText(final.process)));
  }
  for (const FinalState& final : disturbed.finals) {
    if (!AtTheEnd(disturbed, final)) continue;
    ++verdict->members;
    if (final.state == *right) continue;
    ++verdict->members_different;
    verdict->wrong.push_back(
        fmt::format("{} ended with other weights than the undisturbed run", ToText(final.process)));
  }
  if (verdict->members == 0) {
    verdict->wrong.emplace_back("no member had the weights of the last step when the job ended");
  }
}

void CountRecords(const Workload& workload, const GroupState& state, GroupVerdict* verdict) {
  Samples samples(&verdict->wrong);
  for (uint64_t id = 0; id < workload.records; ++id) {
    // A row that is no such number is found by Check, which compares all of it.
    const auto row = static_cast<uint32_t>(std::clamp(state.ids()[id], 0.0F, 16'777'216.0F));
    for (uint32_t epoch = 0; epoch < workload.epochs; ++epoch) {
      const uint32_t times = row >> (kEpochBits * epoch) & kEpochDigitMax;
      if (times == 1) continue;
      ++(times == 0 ? verdict->in_no_step : verdict->in_two_steps);
      samples.Add(times == 0
                      ? fmt::format("record {} of epoch {} is in no step", id, epoch)
                      : fmt::format("record {} of epoch {} is in {} steps", id, epoch, times));
    }
  }
}

}  // namespace

void StepLog::Add(const ProcessName& process, const AppliedStep& applied) {
  applied_.emplace_back(process, applied);
  last_[process] = applied.step;
  newest_ = std::max(newest_, applied.step);
}

uint64_t StepLog::LastOf(const ProcessName& process) const {
  const auto last = last_.find(process);
  return last == last_.end() ? 0 : last->second;
}

std::vector<double> StepLog::Recoveries(const std::vector<WorkerKill>& kills) const {
  // When each step was first applied.
  std::map<uint64_t, uint64_t> first_at;
  for (const auto& [process, applied] : applied_) {
    const auto known = first_at.try_emplace(applied.step, applied.at_ns).first;
    known->second = std::min(known->second, applied.at_ns);
  }
  std::vector<double> times;
  for (const WorkerKill& kill : kills) {
    std::optional<uint64_t> next;
    for (const auto& [step, at_ns] : first_at) {
      if (at_ns > kill.at_ns) next = std::min(next.value_or(at_ns), at_ns);
    }
    if (next.has_value()) times.push_back(static_cast<double>(*next - kill.at_ns) / 1e6);
  }
  return times;
}

bool GroupVerdict::ok() const {
  return different == 0 && in_no_step == 0 && in_two_steps == 0 && members_different == 0 &&
         wrong.empty();
}

const GroupState* FinalStateOf(const GroupRun& undisturbed, const GroupRun& disturbed) {
  return StateUnlike(StateUnlike(nullptr, undisturbed), disturbed);
}

GroupVerdict CheckGroup(const Workload& workload, const GroupRun& undisturbed,
                        const GroupRun& disturbed) {
  GroupVerdict verdict{.steps = disturbed.steps.newest()};
  CompareSteps(undisturbed, disturbed.steps, &verdict);
  CompareFinals(undisturbed, disturbed, &verdict);
  if (const GroupState* const state = FinalStateOf(undisturbed, disturbed)) {
    CountRecords(workload, *state, &verdict);
  }
  return verdict;
}

}  // namespace muster::verify
