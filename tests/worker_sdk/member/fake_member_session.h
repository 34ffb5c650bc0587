#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "tests/worker_sdk/session/fake_loop_session.h"
#include "worker_sdk/session/member_session.h"

namespace muster::internal {

/// The session of a member without a job: it stores nothing, reads nothing and pushes nothing. Not
/// thread-safe.
class FakeMemberSession final : public FakeLoopSession<MemberSession> {
 public:
  const SessionOptions& options() const override { return session_options; }
  const SessionTls& tls() const override { return session_tls; }
  uint64_t incarnation() const override { return 1; }
  absl::StatusOr<std::unique_ptr<ObjectStore>> OpenGroupStore() const override { return nullptr; }
  absl::Status TakeGroup() override { return absl::OkStatus(); }
  void ReturnGroup(uint64_t calls) override { returned.push_back(calls); }
  uint64_t group_calls() override { return 0; }
  void EndGroup() override {}
  void WaitsForGroup(bool) override {}
  absl::StatusOr<StepRecords> ReadStep(const ShardWork&) override {
    return absl::UnimplementedError("no records");
  }
  void BeginStepRun(RunNumber) override {}
  void EnterStep(LeaseToken) override {}
  void LeaveStep(LeaseToken) override {}
  bool StartStepMinibatch(LeaseToken) override { return failure.ok(); }
  void EndStepMinibatch(size_t, bool) override {}
  void PushOfStep(const sdk::PushIdentity&, std::shared_ptr<const sdk::RowBatch>) override {}
  std::optional<RestoreEpoch> AwaitStepPushes(RunNumber) override { return {}; }
  absl::Status status() override { return failure; }
  bool leaving() const override { return false; }
  absl::Status JudgeAbsence(const absl::Status&) override { return absl::OkStatus(); }
  absl::Status AskInterrupted() override {
    if (session_options.interrupted && session_options.interrupted()) {
      failure = absl::CancelledError("interrupted");
    }
    return failure;
  }

  SessionOptions session_options;
  SessionTls session_tls;
  absl::Status failure;
  std::vector<uint64_t> returned;  // by ReturnGroup
};

}  // namespace muster::internal
