#include "tests/sim/group/sim_member.h"

#include <algorithm>
#include <csignal>

#include "base/status.h"
#include "tests/sim/sim_master.h"
#include "tests/sim/through_wire.h"

namespace muster::sim {
namespace {

constexpr milliseconds kMemberCallTimeout{900};
constexpr milliseconds kMemberRetryEvery{100};

bool EndsMember(const absl::Status& status) {
  return absl::IsInvalidArgument(status) || absl::IsFailedPrecondition(status);
}

/// The call waits in the master until it has news, or until the heartbeat's time.
struct ParkedCall {
  GroupExchangeRequest request;
  std::optional<TimePoint> until;

  bool Ready(const MasterCore& core, StepTime at, GroupExchangeReply* reply) {
    *reply = core.GroupReplyFor({request.worker, request.incarnation});
    if (!until.has_value()) until = at.now + reply->heartbeat_interval;
    const bool news = request.master_incarnation != reply->master_incarnation ||
                      reply->standing == GroupStanding::kUnknown || reply->news > request.news;
    return news || at.now >= *until;
  }
};

}  // namespace

SimMember::SimMember(Env* env, ProcessRef process, uint32_t slot, uint64_t start,
                     const TrainerFaults& faults)
    : env_(env),
      process_(std::move(process)),
      slot_(slot),
      start_(start),
      faults_(faults),
      rng_(env->Stream(3, process_->id)),
      name_("worker-" + std::to_string(slot)),
      tables_(env, &rng_,
              {.process = process_,
               .slot = slot,
               .changed = [this] { Pump(); },
               .refused = [this] { env_->Exit(process_, {.exit_code = 1}); },
               .told = [](const WorkerExchangeReply&) {}}) {
  slot_file_.incarnation = HashWords(env->seed, process_->id) | 1;
}

void SimMember::Hello() {
  const WorkerKey key{name_, slot_file_.incarnation};
  Call<bool>(env_, {process_, WorkerEnd(slot_), kMemberCallTimeout,
                    [key, start = start_](MasterCore& core, StepTime at) -> absl::StatusOr<bool> {
                      MUSTER_RETURN_IF_ERROR(core.HelloWorker(key, StartNumber(start), at));
                      return true;
                    },
                    [this](const absl::StatusOr<bool>& reply) {
                      if (EndsMember(reply.status())) return env_->Exit(process_, {.exit_code = 1});
                      if (!reply.ok()) return After(kMemberRetryEvery, [this] { Hello(); });
                      std::vector<ProcessRef>& others = env_->greeted[slot_];
                      for (const ProcessRef& other : others) {
                        env_->probes.Hit(Probe::kWorkerZombie, other->alive ? 1 : 0);
                      }
                      others.push_back(process_);
                      tables_.Open(name_, slot_file_.incarnation, [this] { Begin(); });
                    }});
}

void SimMember::Begin() {
  const auto digest =
      static_cast<uint32_t>(env_->knobs.group_same_start ? 7 : process_->id % 1'000);
  memory_ = InitialModel(digest);
  core_.emplace(
      sdk::MemberCore::Options{.worker = name_,
                               .incarnation = slot_file_.incarnation,
                               .introduction = {.tensors = {{.name = "weights", .elements = 8}},
                                                .initial_digest = digest,
                                                .addresses = {"unix:/" + name_}},
                               .retry_pause = milliseconds(100)});
  Pump();
}

void SimMember::Exchange() {
  if (ending_ || (calling_ && !core_->request_changed())) return;
  calling_ = true;
  GroupExchangeRequest request = core_->Request();
  CheckVote(request);
  if (env_->knobs.wire) request = ThroughWire(request);
  env_->Say(*process_, "exchange {}: attempt {}, phase {}, {}{}", request.sequence,
            request.attempt.value(), static_cast<int>(request.phase),
            request.state.has_value() ? fmt::format("state {}/{}", request.state->lineage.value(),
                                                    request.state->step.value())
                                      : "no state",
            request.sum.has_value() ? ", voted" : "");
  const uint64_t call = ++newest_call_;
  auto parked = std::make_shared<ParkedCall>(ParkedCall{std::move(request), std::nullopt});
  const SumKey sum = sum_.has_value() ? sum_->first : SumKey();
  MasterCall<GroupExchangeReply> exchange{
      process_, WorkerEnd(slot_), kMemberCallTimeout,
      [env = env_, parked, sum](MasterCore& core,
                                StepTime at) -> absl::StatusOr<GroupExchangeReply> {
        env->judge.OnReport(core.incarnation(), parked->request, sum.attempt, sum.step);
        MUSTER_RETURN_IF_ERROR(core.ExchangeGroup(parked->request, at));
        return GroupExchangeReply();
      },
      [this, call](const absl::StatusOr<GroupExchangeReply>& reply) { OnExchanged(call, reply); }};
  exchange.ready = [parked](const MasterCore& core, StepTime at, GroupExchangeReply* reply) {
    return parked->Ready(core, at, reply);
  };
  Call<GroupExchangeReply>(env_, std::move(exchange));
}

void SimMember::CheckVote(const GroupExchangeRequest& request) {
  const std::optional<StepWork>& work = core_->view().work;
  if (!request.sum.has_value() || !work.has_value() || !IsGroupEvaluate(work->shard)) return;
  env_->judge.OnEvaluated(name(), core_->view().lineage, request.sum->attempt, request.sum->step);
}

void SimMember::OnExchanged(uint64_t call, const absl::StatusOr<GroupExchangeReply>& reply) {
  if (ending_) return;
  if (EndsMember(reply.status())) {
    ending_ = true;
    return After(milliseconds(200), [this] { env_->Exit(process_, {.exit_code = 1}); });
  }
  if (reply.ok()) {
    GroupExchangeReply taken = *reply;
    if (taken.work.has_value()) {
      FillWork(&taken.work->work);
      if (IsGroupEvaluate(taken.work->shard)) taken.work->work.mode = DatasetMode::kEvaluate;
    }
    if (taken.ahead.has_value()) FillWork(&*taken.ahead);
    if (env_->knobs.wire) taken = ThroughWire(taken);
    env_->Say(*process_, "hears news {}: standing {}, attempt {}, step {}/{} of attempt {}",
              taken.news, static_cast<int>(taken.standing), taken.attempt.value(),
              taken.lineage.value(), taken.step.value(), taken.step_attempt.value());
    if (taken.capture.has_value()) {
      env_->Say(*process_, "is asked for a copy of step {}, attempt {}: '{}'",
                taken.capture->step.value(), taken.capture->attempt.value(),
                taken.capture->object_prefix);
    }
    env_->probes.Hit(Probe::kGroupDropsState,
                     taken.drop_state && core_->state().has_value() ? 1 : 0);
    core_->OnReply(taken);
    // Drained alone, another process takes its place: the group may need it.
    told_to_stop_ |= taken.directive == JobDirective::kEnd;
  }
  if (call == newest_call_) {
    // At once, or after a pause if the master cannot be reached.
    const nanoseconds pause = reply.ok() ? nanoseconds(0) : nanoseconds(kMemberRetryEvery);
    After(pause, [this, call] {
      if (call != newest_call_) return;
      calling_ = false;
      Pump();
    });
  }
  Pump();
}

void SimMember::Pump() {
  if (pumping_ || ending_ || !process_->alive) return;
  if (!core_.has_value()) return tables_.Carry();
  pumping_ = true;
  tables_.Follow(core_->run());
  AwaitTables();
  if (process_->alive) Act();
  pumping_ = false;
  if (ending_ || !process_->alive) return;
  tables_.Follow(core_->run());
  tables_.Carry();
}

void SimMember::Act() {
  Capture();
  Digest();
  Contribute();
  NextTask();
  Transfer();
  FinishSum();
  Prune();
  if (!ending_ && process_->alive) Exchange();
}

void SimMember::NextTask() {
  if (busy_) return;
  task_ = core_->NextTask();
  switch (task_.kind) {
    case sdk::TrainerTask::Kind::kWait:
      return;
    case sdk::TrainerTask::Kind::kCompute:
      busy_ = true;
      env_->probes.Hit(Probe::kGroupKeptGradients, task_.run == run_ ? 1 : 0);
      if (task_.run != run_) gradients_.clear();
      run_ = task_.run;
      to_compute_.clear();
      for (const MinibatchSpan& span : task_.spans) {
        for (uint32_t i = 0; i < span.count; ++i) to_compute_.push_back(span.first.value() + i);
      }
      slot_file_.token = task_.work.token;
      slot_file_.shard = task_.work.shard;
      slot_file_.minibatches = 0;
      return NextMinibatch();
    case sdk::TrainerTask::Kind::kApply:
    case sdk::TrainerTask::Kind::kReplay:
      busy_ = true;
      return After(Some(milliseconds(20)), [this] {
        Apply();
        Pump();
      });
    case sdk::TrainerTask::Kind::kRestart:
      env_->probes.Hit(Probe::kGroupRestart);
      ending_ = true;
      return env_->Exit(process_, {.exit_code = 1});
    case sdk::TrainerTask::Kind::kEnd:
      return Finish();
  }
}

void SimMember::NextMinibatch() {
  if (Misbehaves(faults_.crashes)) {
    env_->probes.Hit(Probe::kTrainerCrash);
    return env_->Exit(process_, {.signal = SIGSEGV});
  }
  if (Misbehaves(faults_.abandons)) core_->Leave();
  if (Misbehaves(faults_.fails)) {
    env_->probes.Hit(Probe::kTrainerFailure);
    // The attempt may be another one than that in which the loop began.
    const std::optional<StepWork>& work = core_->view().work;
    if (work.has_value()) env_->oracle.OnTrainerFailed(work->shard, work->token);
    core_->OnTrainerFailed(task_.run, "it fails", false);
  }
  if (to_compute_.empty() ||
      !core_->StartMinibatch(task_.run, MinibatchIndex(to_compute_.front()))) {
    return EndLoop();
  }
  const uint32_t minibatch = to_compute_.front();
  to_compute_.pop_front();
  ++slot_file_.minibatches;
  After(Some(env_->knobs.compute_max), [this, minibatch, before = memory_] {
    Compute(minibatch, before);
    Pump();
  });
}

void SimMember::Compute(uint32_t minibatch, ModelState before) {
  if (before != memory_) {
    env_->oracle.Fail("torn", fmt::format("the state of {} changed in a minibatch", name_));
  }
  if (task_.run == core_->run()) {
    gradients_[minibatch] = GradientOf(memory_, task_.work.shard, minibatch);
  }
  computed_ = minibatch;
  tables_.Push(task_.run, task_.work, minibatch, Now());
  waits_ = Waits::kPush;
  AwaitTables();
}

void SimMember::AwaitTables() {
  if (waits_ == Waits::kPush && tables_.MayGoOn(task_.run)) EndMinibatch();
  if (waits_ == Waits::kAllPushes && tables_.Settled(task_.run)) LeaveLoop();
}

void SimMember::EndMinibatch() {
  waits_ = Waits::kNothing;
  core_->OnMinibatch(task_.run, MinibatchIndex(computed_), std::chrono::milliseconds(1 + slot_));
  NextMinibatch();
}

/// A vote says that everything is in the tables.
void SimMember::EndLoop() {
  waits_ = Waits::kAllPushes;
  AwaitTables();
}

void SimMember::LeaveLoop() {
  waits_ = Waits::kNothing;
  std::vector<uint32_t> computed;
  for (const auto& [minibatch, gradient] : gradients_) computed.push_back(minibatch);
  const std::optional<RestoreEpoch> pushed_under = tables_.PushedUnder(task_.run);
  if (pushed_under.has_value()) {
    core_->OnComputed(task_.run, GroupMetricsOf(task_.work.shard, computed), *pushed_under);
  }
  slot_file_.token = {};
  busy_ = false;
  After({}, [this] { Pump(); });
}

void SimMember::Apply() {
  const bool own = task_.kind == sdk::TrainerTask::Kind::kApply;
  ModelSum sum = own && sum_.has_value() ? sum_->second : ModelSum();
  sum.records = task_.records;
  if (!own) sum = fetched_;
  env_->probes.Hit(own ? Probe::kGroupApply : Probe::kGroupReplay);
  StateLabel label = *core_->state();
  label.step = task_.step;
  // A replayed evaluation has an empty sum.
  const bool evaluation = task_.evaluation || (!own && sum == ModelSum());
  if (evaluation) sum = {};
  if (!evaluation) memory_ = Applied(memory_, sum);
  const auto& odd = env_->knobs.group_odd_apply;
  if (odd.has_value() && odd->slot == slot_ && own && !evaluation &&
      label.step.value() >= odd->step && !std::exchange(env_->odd_applied, true)) {
    env_->Say(*process_, "applies the step otherwise");
    ++memory_;
    odd_ = true;
  }
  env_->Say(*process_, "applies {}/{}", label.lineage.value(), label.step.value());
  Judge(label, "has applied it");
  core_->OnApplied();
  if (core_->SumsKeptAfter().has_value()) kept_[label] = sum;
  busy_ = false;
}

void SimMember::Judge(const StateLabel& label, const std::string& how) {
  if (!odd_) env_->judge.OnState(label, memory_, name_ + " " + how);
}

void SimMember::Finish() {
  ending_ = true;
  const bool refused = !core_->refused().empty();
  env_->Exit(process_, {.exit_code = refused ? 1u : 0u});
}

}  // namespace muster::sim
