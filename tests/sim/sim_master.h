#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "master/core/group_commit.h"
#include "master/core/master_core.h"
#include "tests/sim/env.h"
#include "tests/sim/topic_watch.h"

namespace muster::sim {

/// A master process: the real core and the real group commit. The code around them replaces the
/// threads of master/service.
class SimMaster {
 public:
  SimMaster(Env* env, ProcessRef process, CoreOptions options, std::string machine);

  /// Continues from the journal, or takes it over from a master of another machine; serves after
  /// its start is journaled.
  void Start();
  void Post(GroupCommit::Item item);
  /// An answer leaves.
  void CheckAnswer();
  bool serving() const { return serving_; }
  const ProcessRef& process() const { return process_; }
  const MasterCore& core() const { return *core_; }
  /// Of the journal to which it writes.
  uint64_t generation() const { return generation_; }
  /// The partition as its current owner has it; null when the owner has not built it yet.
  const ps::Partition* Current(PartitionId id) const;

 private:
  /// Files of snapshots that count, or that are kept.
  static std::set<std::string> NamedFiles(const DurableState& state);
  StepTime At() const;
  /// The next step of the start, after some time.
  void Then(std::function<void()> step);
  void TakeOver();
  void Begin();
  /// Whether the journal is still open for it; if not, the process ends.
  bool Look();
  void Synced(bool open_before, const std::function<void()>& synced);
  void Kick();
  void Tick();
  void RunBatch();
  void Delete(const std::vector<std::string>& unused);
  void Write(std::vector<Mutation> mutations, std::function<void()> synced);
  void CheckDone(const std::vector<Mutation>& mutations);
  void CountProbes();

  Env* const env_;
  const ProcessRef process_;
  CoreOptions options_;
  const std::string machine_;
  uint64_t generation_ = 0;
  TimePoint looked_at_{};
  Rng rng_;
  std::unique_ptr<MasterCore> core_;
  std::unique_ptr<GroupCommit> commit_;
  TopicWatch topic_watch_;
  std::vector<GroupCommit::Item> queue_;
  bool serving_ = false;
  bool kicked_ = false;
  bool writing_ = false;
  JobTotals counted_;
  uint64_t thinned_ = 0;
  ForgetState forgotten_;
  uint64_t failed_ = 0;
};

/// One call of `caller` to the process that is the master when it arrives. `step` runs in the
/// master, never, once or twice; `done` in the caller, once: with the first answer, kUnavailable
/// when nothing listens, or kDeadlineExceeded.
template <typename Reply>
struct MasterCall {
  ProcessRef caller;
  Endpoint from = 0;
  nanoseconds timeout{0};
  std::function<absl::StatusOr<Reply>(MasterCore&, StepTime)> step;
  std::function<void(absl::StatusOr<Reply>)> done;
  /// Of a call that waits for news in the master: as GroupCommit::Item::ready; makes the reply.
  std::function<bool(const MasterCore&, StepTime, Reply*)> ready = nullptr;
};

template <typename Reply>
void Call(Env* env, MasterCall<Reply> call) {
  struct State {
    MasterCall<Reply> call;
    bool over = false;
    bool answered = false;
  };
  auto state = std::make_shared<State>(State{std::move(call)});
  const auto finish = [env, state](absl::StatusOr<Reply> reply) {
    if (state->over) {
      env->probes.Hit(state->answered ? Probe::kDoubleReply : Probe::kLateReply);
      return;
    }
    state->over = true;
    state->call.done(std::move(reply));
  };
  const auto answer = [env, state, finish](absl::StatusOr<Reply> reply) {
    env->network.Send(kMasterEnd, state->call.from, [env, state, finish, reply] {
      env->scheduler.After({}, state->call.caller, [state, finish, reply] {
        finish(reply);
        state->answered = true;
      });
    });
  };
  env->network.Send(state->call.from, kMasterEnd, [env, state, answer] {
    SimMaster* const master = env->MasterFor(state->call.from);
    if (master == nullptr || !master->serving()) {
      return answer(absl::UnavailableError("nothing listens"));
    }
    env->probes.Hit(Probe::kOldMasterCalled, master != env->master);
    env->scheduler.After({}, master->process(), [state, answer, master] {
      auto reply = std::make_shared<absl::StatusOr<Reply>>(absl::UnknownError(""));
      GroupCommit::Item item{
          [state, reply](MasterCore& core, StepTime at) {
            *reply = state->call.step(core, at);
            return reply->status();
          },
          [master, answer, reply](const absl::Status& status) {
            master->CheckAnswer();
            answer(status.ok() ? std::move(*reply) : absl::StatusOr<Reply>(status));
          }};
      if (state->call.ready != nullptr) {
        item.ready = [state, reply](const MasterCore& core, StepTime at) {
          return state->call.ready(core, at, &**reply);
        };
      }
      master->Post(std::move(item));
    });
  });
  env->scheduler.After(state->call.timeout, state->call.caller, [state, finish] {
    if (!state->over) finish(absl::DeadlineExceededError("no answer"));
  });
}

}  // namespace muster::sim
