#include "worker_sdk/session/group_impl.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/address.h"
#include "base/status.h"
#include "worker_sdk/control/control_client.h"
#include "worker_sdk/session/group_step.h"
#include "worker_sdk/session/waiting.h"

namespace muster::internal {
namespace {

using Kind = sdk::TrainerTask::Kind;

constexpr std::chrono::milliseconds kLookEvery{250};
constexpr std::chrono::seconds kReadPause{1};
constexpr std::chrono::seconds kFarewellTimeout{1};
/// To make room for the sums of so few elements takes less time than to wake another thread.
constexpr uint64_t kGiveHereMax = uint64_t{1} << 17;

GroupDtype DtypeOf(SumType type) {
  switch (type) {
    case SumType::kFixedPoint:
      return GroupDtype::kFixedPoint;
    case SumType::kFloat32:
      return GroupDtype::kFloat32;
    case SumType::kBfloat16:
      return GroupDtype::kBfloat16;
  }
  // No enumerator; GroupTensors refuses it.
  return GroupDtype::kBytes;
}

}  // namespace

GroupImpl::GroupImpl(SessionImpl* session, std::unique_ptr<ObjectStore> store,
                     std::shared_ptr<collectives::Backend> backend)
    : session_(session),
      store_(std::move(store)),
      backend_(std::move(backend)),
      reader_([session](const ShardWork& work) { return session->ReadStep(work); }) {
  if (backend_ != nullptr) tensors_.SetBackend(backend_->name());
}

uint32_t GroupImpl::AddBucket(std::string_view name, uint64_t elements, const SumOptions& options) {
  MutexLock lock(&mutex_);
  absl::StatusOr<uint32_t> bucket =
      tensors_.AddBucket(name, elements, DtypeOf(options.type), options.fraction_bits);
  FailLocked(bucket.status());
  if (bucket.ok() && options.after_loop) {
    givings_[*bucket] = sdk::GradientSums::Giving::kAfterLoop;
    if (options.on_device) {
      FailLocked(absl::InvalidArgumentError(
          fmt::format("the bucket \"{}\" has SumOptions::after_loop and on_device: add up its "
                      "minibatches by GroupStep::AddDevice",
                      name)));
    }
  }
  if (bucket.ok() && options.on_device) {
    buckets_on_device_.push_back(*bucket);
    if (device() == nullptr) {
      FailLocked(
          absl::InvalidArgumentError(fmt::format("the bucket \"{}\" is on the device, where only "
                                                 "NCCL adds: give Session::Group the backend "
                                                 "CollectiveOptions::Backend::kNccl",
                                                 name)));
    }
  }
  return bucket.ok() ? *bucket : 0;
}

uint32_t GroupImpl::AddWholeBucket(std::string_view name, uint64_t elements,
                                   const SumOptions& options) {
  const uint32_t bucket = AddBucket(name, elements, options);
  MutexLock lock(&mutex_);
  if (options.on_device) {
    FailLocked(absl::InvalidArgumentError(
        "SumOptions::on_device is not for training with local steps, whose weights are in the "
        "memory of the process"));
  }
  if (failure_.ok()) givings_[bucket] = sdk::GradientSums::Giving::kWhole;
  return bucket;
}

void GroupImpl::AddState(std::string_view name, GroupDtype dtype, uint64_t elements,
                         std::span<std::byte> memory) {
  MutexLock lock(&mutex_);
  FailLocked(tensors_.AddState(name, dtype, elements, memory));
}

void GroupImpl::FailLocked(absl::Status status) {
  if (status.ok() || !failure_.ok()) return;
  failure_ = std::move(status);
  if (session_ != nullptr) session_->ProgramError(std::string(Message(failure_)));
  Signal();
}

void GroupImpl::ProgramError(std::string message) {
  MutexLock lock(&mutex_);
  FailLocked(absl::InvalidArgumentError(message));
}

void GroupImpl::Fail(absl::Status status) {
  MutexLock lock(&mutex_);
  FailLocked(std::move(status));
}

absl::Status GroupImpl::status() const {
  {
    MutexLock lock(&mutex_);
    if (!failure_.ok()) return failure_;
  }
  return session_ == nullptr ? absl::OkStatus() : session_->status();
}

bool GroupImpl::HasFinalState() const {
  MutexLock lock(&mutex_);
  return core_.has_value() && core_->HasFinalState();
}

sdk::GroupTensors GroupImpl::tensors() const {
  MutexLock lock(&mutex_);
  return tensors_;
}

GroupImpl::~GroupImpl() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    Signal();
  }
  // It ends the call that the master keeps.
  SayFarewell();
  for (std::thread& thread : threads_) thread.join();
  storer_.reset();
  {
    MutexLock giving(&giving_);
    reducer_.reset();
  }
  listener_.reset();
  MutexLock lock(&mutex_);
  if (session_ != nullptr) session_->ReturnGroup(core_.has_value() ? core_->calls() : 0);
}

/// If the master does not hear it, the process counts as silent soon.
void GroupImpl::SayFarewell() {
  std::optional<GroupExchangeRequest> farewell;
  {
    MutexLock lock(&mutex_);
    if (core_.has_value()) farewell = core_->Farewell();
  }
  if (!farewell.has_value()) return;
  sdk::ControlClient client(session_->options().master_address, session_->options().worker_name,
                            JobOf(session_->job()), session_->tls().master);
  static_cast<void>(client.ExchangeGroup(*farewell, kFarewellTimeout));
}

bool GroupImpl::KeepMemory(std::shared_ptr<const void> memory) {
  if (own_memory_ != nullptr) return false;
  own_memory_ = std::move(memory);
  return true;
}

collectives::ListenerOptions GroupImpl::ListenerOptionsHere() const {
  const SessionOptions& own = session_->options();
  collectives::ListenerOptions options;
  options.job_id = session_->job().job_id;
  options.worker = own.worker_name;
  options.incarnation = session_->incarnation();
  // Beside the slot file, where only this worker's processes write.
  if (!own.slot_file.empty()) options.unix_path = own.slot_file + ".group";
  const absl::StatusOr<std::string> host = LocalAddressTowards(own.master_address);
  if (host.ok()) options.host = options.advertise = *host;
  options.tls_server = session_->tls().members_accept;
  options.tls_client = session_->tls().members_connect;
  return options;
}

absl::Status GroupImpl::Begin() {
  collectives::ListenerOptions options = ListenerOptionsHere();
  options.provider = this;
  MUSTER_ASSIGN_OR_RETURN(listener_, collectives::Listener::Start(std::move(options)));
  MutexLock lock(&mutex_);
  if (!failure_.ok()) return failure_;
  tensors_.Close();
  MUSTER_ASSIGN_OR_RETURN(gradients_,
                          sdk::GradientSums::Create(tensors_.tensors(), buckets_on_device_));
  if (gradients_->size() == 0) {
    return absl::InvalidArgumentError(
        "the group has no bucket: call Group::AddBucket before the first NextStep");
  }
  // The first step needs room for its sums, too: better no beginning than an end in the middle.
  MUSTER_RETURN_IF_ERROR(SummedStep::Create(*gradients_).status());
  for (const auto& [bucket, giving] : givings_) gradients_->SetGiving(bucket, giving);
  uint64_t elements = 0;
  for (uint32_t i = 0; i < gradients_->size(); ++i) elements += gradients_->tensor(i).elements;
  gives_here_ = backend_ == nullptr && elements <= kGiveHereMax;
  MUSTER_RETURN_IF_ERROR(AllocateBuckets());
  memory_ = GroupMemory(tensors_.memory());
  core_.emplace(sdk::MemberCore::Options{
      .worker = session_->options().worker_name,
      .incarnation = session_->incarnation(),
      .calls_before = session_->group_calls(),
      .introduction = {tensors_.tensors(), memory_.Digest(), listener_->addresses()}});
  return absl::OkStatus();
}

absl::Status GroupImpl::AllocateBuckets() {
  device_buckets_.resize(gradients_->size());
  for (const uint32_t bucket : buckets_on_device_) {
    const GroupTensor& tensor = gradients_->tensor(bucket);
    const collectives::GpuBucketOptions options{.type = *collectives::SumTypeOf(tensor.dtype),
                                                .elements = tensor.elements,
                                                .fraction_bits = tensor.fraction_bits};
    MUSTER_ASSIGN_OR_RETURN(device_buckets_[bucket], device()->NewBucket(options));
  }
  return absl::OkStatus();
}

std::unique_ptr<GroupStepImpl> GroupImpl::NextStep() {
  if (session_ == nullptr) return nullptr;
  if (in_apply_) {
    ProgramError("Group::NextStep inside of what is given to Commit");
    return nullptr;
  }
  if (listener_ == nullptr) {
    const absl::Status begun = Begin();
    if (!begun.ok()) {
      MutexLock lock(&mutex_);
      FailLocked(begun);
      return nullptr;
    }
    StartThreads();
  }
  while (true) {
    sdk::TrainerTask task = AwaitTask();
    if (task.kind == Kind::kCompute) {
      std::unique_ptr<GroupStepImpl> step = BeginStep(task);
      if (step != nullptr) return step;
    } else if (task.kind == Kind::kEnd) {
      session_->EndGroup();
      return nullptr;
    } else if (task.kind == Kind::kRestart) {
      ProgramError(
          "the state of this process was overwritten, and no other process has it: the process "
          "must begin again");
      return nullptr;
    } else {
      std::shared_ptr<SummedStep> sums = SumsOf(task);
      if (sums->facts.evaluate == 0) {
        return std::make_unique<GroupStepImpl>(this, std::move(task), std::move(sums));
      }
      Applied(sums);
    }
  }
}

sdk::TrainerTask GroupImpl::AwaitTask() {
  if (put_back_.has_value()) return *std::exchange(put_back_, std::nullopt);
  sdk::TrainerTask task{.kind = Kind::kEnd};
  session_->WaitsForGroup(true);
  MutexLock lock(&mutex_);
  trainer_waits_ = true;
  sdk::WaitingLines lines(clock_.Now());
  bool said = false;
  while (true) {
    task.kind = Kind::kEnd;
    if (OverLocked() || !session_->status().ok()) break;
    if (session_->leaving()) core_->Leave();
    task = core_->NextTask();
    if (task.kind != Kind::kWait) break;
    // Copies of the state may begin now.
    if (!std::exchange(said, true)) Signal();
    const uint64_t seen = events_;
    while (events_ == seen && changed_.WaitFor(&mutex_, kLookEvery)) {
    }
    const TimePoint now = clock_.Now();
    if (!lines.Due(now)) continue;
    const std::string& waits = trouble_.empty() ? core_->view().waits : trouble_;
    std::fprintf(stderr, "muster: waiting for the group (%lld s)%s%s\n", lines.seconds(now),
                 waits.empty() ? "" : ": ", waits.c_str());
  }
  if (task.kind == Kind::kEnd && core_.has_value() && !core_->refused().empty()) {
    FailLocked(absl::FailedPreconditionError(std::string(core_->refused())));
  }
  trainer_waits_ = false;
  Signal();
  session_->WaitsForGroup(false);
  return task;
}

std::unique_ptr<GroupStepImpl> GroupImpl::BeginStep(const sdk::TrainerTask& task) {
  const absl::StatusOr<SessionImpl::StepRecords> read = reader_.Read(task.work.work);
  if (!read.ok()) {
    ReadFailed(task, read.status());
    return nullptr;
  }
  BeginRun(task);
  return std::make_unique<GroupStepImpl>(this, task, *read, metrics_);
}

void GroupImpl::ReadFailed(const sdk::TrainerTask& task, const absl::Status& why) {
  if (absl::IsCancelled(why)) return;
  std::string reason(Message(why));
  std::fprintf(stderr, "muster: %s\n", reason.c_str());
  if (absl::IsResourceExhausted(why)) {
    // Not the shard's fault, and it may pass.
    MutexLock lock(&mutex_);
    const TimePoint until = clock_.Now() + kReadPause;
    while (!OverLocked() && clock_.Now() < until) {
      changed_.WaitFor(&mutex_, until - clock_.Now());
    }
    return;
  }
  // A file that differs from the indexed one does so at every member.
  const bool fatal = absl::IsFailedPrecondition(why) || absl::IsNotFound(why);
  FailStep(task, std::move(reason), fatal);
}

void GroupImpl::BeginRun(const sdk::TrainerTask& task) {
  if (metrics_run_ != task.run) metrics_ = ShardMetrics();
  metrics_run_ = task.run;
  MutexLock lock(&mutex_);
  // A sum of an earlier run may still be read. Its attempt is over, so it soon ends.
  while (gradients_->run() != task.run && pending_ > 0 && !OverLocked()) {
    changed_.WaitFor(&mutex_, kLookEvery);
  }
  if (pending_ == 0) gradients_->Begin(task.run);
}

bool GroupImpl::StartMinibatch(const sdk::TrainerTask& task, MinibatchIndex minibatch) {
  if (!session_->StartStepMinibatch(task.work.token)) return false;
  MutexLock lock(&mutex_);
  if (OverLocked() || !core_->StartMinibatch(task.run, minibatch)) return false;
  minibatch_began_ = clock_.Now();
  return true;
}

void GroupImpl::EndMinibatch(const sdk::TrainerTask& task, MinibatchIndex minibatch,
                             const ShardMetrics& metrics) {
  if (metrics_run_ == task.run) metrics_ = metrics;
  Change change(this, kGives);
  gradients_->End(task.run, minibatch);
  const auto took = clock_.Now() - minibatch_began_;
  core_->OnMinibatch(task.run, minibatch,
                     std::chrono::duration_cast<std::chrono::microseconds>(took));
  if (!core_->computes()) call_times_.OnComputed(clock_.Now());
}

void GroupImpl::EndLoop(const sdk::TrainerTask& task) {
  // A vote says that everything is in the tables.
  const std::optional<RestoreEpoch> pushed_under =
      session_->AwaitStepPushes(RunNumber(static_cast<uint32_t>(task.run)));
  Change change(this, kGives);
  if (pushed_under.has_value()) core_->OnComputed(task.run, metrics_, *pushed_under);
  call_times_.OnComputed(clock_.Now());
  // In a long step, a thread waits for a later time.
  const bool sooner = calls_ == 0 && call_times_.Next(core_->computes()) < idle_until_;
  if (sooner && !idle_.empty()) idle_.back()->SignalAll();
}

void GroupImpl::FailStep(const sdk::TrainerTask& task, std::string reason, bool fatal) {
  Change change(this);
  core_->OnTrainerFailed(task.run, std::move(reason), fatal);
}

absl::Status GroupImpl::Add(const sdk::TrainerTask& task, MinibatchIndex minibatch, uint32_t bucket,
                            std::span<const float> gradient) {
  Change change(this, kGives);
  return gradients_->Add(task.run, minibatch, bucket, gradient);
}

absl::Status GroupImpl::AddDevice(const sdk::TrainerTask& task, MinibatchIndex minibatch,
                                  uint32_t bucket, const float* gradient, uint64_t elements,
                                  void* stream) {
  Change change(this, kGives);
  MUSTER_ASSIGN_OR_RETURN(const std::optional<sdk::SumMode> mode,
                          gradients_->AddElsewhere(task.run, minibatch, bucket, elements));
  if (!mode.has_value()) return absl::OkStatus();
  return device_buckets_[bucket]->Add(reinterpret_cast<uint64_t>(gradient), stream,
                                      *mode == sdk::SumMode::kStore);
}

bool GroupImpl::TakeStateCopied() {
  MutexLock lock(&mutex_);
  return std::exchange(state_copied_, false);
}

absl::Status GroupImpl::Put(const sdk::TrainerTask& task, uint32_t bucket,
                            std::span<const float> values, std::string_view what) {
  Change change(this, kGives);
  return gradients_->Put(task.run, bucket, values, what);
}

absl::Status GroupImpl::CheckPut(const sdk::TrainerTask& task) {
  MutexLock lock(&mutex_);
  return gradients_->CheckPut(task.run);
}

bool GroupImpl::trains_locally() const {
  MutexLock lock(&mutex_);
  return std::ranges::any_of(
      givings_, [](const auto& one) { return one.second == sdk::GradientSums::Giving::kWhole; });
}

LineageNumber GroupImpl::lineage() const {
  MutexLock lock(&mutex_);
  const bool known = core_.has_value() && core_->state().has_value();
  return known ? core_->state()->lineage : LineageNumber();
}

std::shared_ptr<SummedStep> GroupImpl::SumsOf(const sdk::TrainerTask& task) {
  std::shared_ptr<SummedStep> sums;
  {
    MutexLock lock(&mutex_);
    const StateLabel after{core_->state()->lineage, task.step};
    if (task.kind == Kind::kReplay) {
      sums = fetched_;
    } else if (task.evaluation) {
      sums = std::make_shared<SummedStep>();
    } else {
      sums = sums_;
    }
    // What a topic has of its offsets depends on when they are read, so nobody counts for itself.
    if (task.kind == Kind::kApply) sums->facts.records = task.records;
    sums->after = after;
  }
  return sums;
}

void GroupImpl::ApplyFailed() {
  std::fprintf(stderr,
               "muster: apply has thrown: this member copies the state anew from the others\n");
  Change change(this);
  core_->OnApplyFailed();
}

void GroupImpl::Applied(const std::shared_ptr<SummedStep>& sums) {
  // Others ask for sums that are kept, and any number of steps may be: not in the device's memory.
  bool here = device() == nullptr;
  while (true) {
    {
      Change change(this);
      const bool keeps = core_->SumsKeptAfter().has_value();
      if (!keeps || here) {
        core_->OnApplied();
        if (keeps) {
          sums->DropFloats();
          kept_.push_back(sums);
        }
        if (fetched_ == sums) fetched_ = nullptr;
        PruneKept();
        return;
      }
    }
    const absl::Status moved = sums->MoveToHost(device());
    here = true;
    if (!moved.ok()) return Fail(moved);
  }
}

}  // namespace muster::internal
