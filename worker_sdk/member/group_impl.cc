#include "worker_sdk/member/group_impl.h"

#include <algorithm>
#include <cstdio>
#include <future>
#include <utility>

#include "base/address.h"
#include "base/status.h"
#include "worker_sdk/member/group_step.h"
#include "worker_sdk/session/waiting.h"

namespace muster::internal {
namespace {

using Kind = sdk::TrainerTask::Kind;
using Waits = MemberDesk::Waits;

constexpr std::chrono::seconds kReadPause{1};

/// What a wait of the trainer's thread asks; nothing if nobody wants to be asked.
std::function<absl::Status()> AskOf(MemberSession* session) {
  if (session == nullptr || !session->options().interrupted) return nullptr;
  return [session] { return session->AskInterrupted(); };
}

}  // namespace

GroupImpl::GroupImpl(MemberSession* session, std::unique_ptr<ObjectStore> store,
                     std::shared_ptr<collectives::Backend> backend)
    : session_(session),
      backend_(std::move(backend)),
      desk_(
          [session](const absl::Status& failure) {
            if (session != nullptr) session->ProgramError(std::string(Message(failure)));
          },
          AskOf(session)),
      reader_([session](const ShardWork& work) { return session->ReadStep(work); }),
      copies_({.desk = &desk_, .reader = &reader_, .store = std::move(store), .device = device()}) {
  if (backend_ != nullptr) tensors_.SetBackend(backend_->name());
}

GroupImpl::~GroupImpl() {
  desk_.Tell([](DeskContents& desk) { desk.stopping = true; });
  if (exchanges_ != nullptr) {
    // If the master does not hear it, the process counts as silent soon.
    const auto said = std::make_shared<std::promise<void>>();
    listener_->Post([this, said] { exchanges_->SayFarewell([said] { said->set_value(); }); });
    said->get_future().wait();
    copies_.Stop();
    desk_.Close();
    listener_->RunAndWait([this] { exchanges_.reset(); });
    sums_.reset();
  }
  listener_.reset();
  const uint64_t calls =
      desk_.Look([](DeskContents& desk) { return desk.core.has_value() ? desk.core->calls() : 0; });
  if (session_ != nullptr) session_->ReturnGroup(calls);
}

void GroupImpl::ProgramError(std::string message) {
  desk_.Fail(absl::InvalidArgumentError(message));
}

void GroupImpl::Fail(absl::Status status) {
  if (!status.ok()) desk_.Fail(std::move(status));
}

absl::Status GroupImpl::status() const {
  absl::Status failure = desk_.Look([](DeskContents& desk) { return desk.failure; });
  return failure.ok() && session_ != nullptr ? session_->status() : failure;
}

bool GroupImpl::HasFinalState() const {
  return desk_.Look(
      [](DeskContents& desk) { return desk.core.has_value() && desk.core->HasFinalState(); });
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
  options.provider = &copies_;
  MUSTER_ASSIGN_OR_RETURN(listener_, collectives::Listener::Start(std::move(options)));
  MUSTER_RETURN_IF_ERROR(status());
  MutexLock lock(&mutex_);
  MUSTER_ASSIGN_OR_RETURN(sdk::OwnGradients made, MakeGradients());
  MUSTER_ASSIGN_OR_RETURN(device_buckets_, MakeDeviceBuckets(made));
  GroupMemory memory(tensors_.memory());
  sdk::MemberCore::Options core{
      .worker = session_->options().worker_name,
      .incarnation = session_->incarnation(),
      .calls_before = session_->group_calls(),
      .introduction = {tensors_.tensors(), memory.Digest(), listener_->addresses()}};
  gradients_ = desk_.Look([&](DeskContents& desk) {
    desk.core.emplace(std::move(core));
    return &desk.gradients.emplace(std::move(made));
  });
  copies_.Start(std::move(memory), gradients_, listener_.get());
  sums_ = std::make_unique<AttemptSums>(AttemptSums::Options{.desk = &desk_,
                                                             .listener = listener_.get(),
                                                             .backend = backend_,
                                                             .device_buckets = device_buckets_,
                                                             .gradients = gradients_});
  exchanges_ = std::make_unique<MasterExchanges>(MasterExchanges::Options{
      .loop = listener_->loop(),
      .desk = &desk_,
      .master_address = session_->options().master_address,
      .job = JobOf(session_->job()),
      .tls = session_->tls().master,
      .data_root = session_->options().data_root,
      .progress =
          [this] {
            return MasterExchanges::Progress{listener_->moved() + sums_->moved() + copies_.moved(),
                                             copies_.written()};
          },
      .leaving = [this] { return session_->leaving(); },
      .judge_absence =
          [this](const absl::Status& answer) { return session_->JudgeAbsence(answer); }});
  desk_.Open({.post = [this] { listener_->Post([this] { CarryOut(); }); },
              .on_run =
                  [this](sdk::StepRunNumber run) {
                    session_->BeginStepRun(RunNumber(static_cast<uint32_t>(run)));
                  }});
  return absl::OkStatus();
}

void GroupImpl::CarryOut() {
  // What the loop's own thread posts may come after what another thread has posted later.
  if (exchanges_ == nullptr) return;
  const MemberDesk::Orders orders = desk_.TakeOrders();
  if (!orders.over) sums_->CarryOut(orders);
  copies_.CarryOut(orders, sums_->members());
  if (!orders.over) exchanges_->Look();
}

std::unique_ptr<GroupStepImpl> GroupImpl::NextStep() {
  if (session_ == nullptr) return nullptr;
  if (in_apply_) {
    ProgramError("Group::NextStep inside of what is given to Commit");
    return nullptr;
  }
  if (listener_ == nullptr) Fail(Begin());
  if (exchanges_ == nullptr) return nullptr;
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
      std::shared_ptr<StepTotals> sums = SumsOf(task);
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
  sdk::WaitingLines lines(desk_.Now());
  desk_.Await(Waits::kTask, [&](DeskContents& desk) {
    task.kind = Kind::kEnd;
    if (desk.over() || !session_->status().ok()) return true;
    if (session_->leaving()) desk.core->Leave();
    task = desk.core->NextTask();
    if (task.kind == Kind::kEnd && !desk.core->refused().empty()) {
      desk.Fail(absl::FailedPreconditionError(std::string(desk.core->refused())));
    }
    const TimePoint now = desk_.Now();
    if (task.kind == Kind::kWait && lines.Due(now)) {
      const std::string& waits = desk.trouble.empty() ? desk.core->view().waits : desk.trouble;
      std::fprintf(stderr, "muster: waiting for the group (%lld s)%s%s\n", lines.seconds(now),
                   waits.empty() ? "" : ": ", waits.c_str());
    }
    return task.kind != Kind::kWait;
  });
  session_->WaitsForGroup(false);
  if (task.kind == Kind::kWait) task.kind = Kind::kEnd;
  return task;
}

std::unique_ptr<GroupStepImpl> GroupImpl::BeginStep(const sdk::TrainerTask& task) {
  const absl::StatusOr<StepRecords> read = reader_.Read(task.work.work);
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
    desk_.Await(Waits::kTime, [](DeskContents&) { return false; }, desk_.Now() + kReadPause);
    return;
  }
  // A file that differs from the indexed one does so at every member.
  const bool fatal = absl::IsFailedPrecondition(why) || absl::IsNotFound(why);
  FailStep(task, std::move(reason), fatal);
}

void GroupImpl::BeginRun(const sdk::TrainerTask& task) {
  if (metrics_run_ != task.run) metrics_ = ShardMetrics();
  metrics_run_ = task.run;
  desk_.BeginRun(task.run);
}

bool GroupImpl::StartMinibatch(const sdk::TrainerTask& task, MinibatchIndex minibatch) {
  if (!session_->StartStepMinibatch(task.work.token)) return false;
  const bool started = desk_.StartMinibatch(task.run, minibatch);
  minibatch_began_ = desk_.Now();
  return started;
}

void GroupImpl::EndMinibatch(const sdk::TrainerTask& task, MinibatchIndex minibatch,
                             const ShardMetrics& metrics) {
  if (metrics_run_ == task.run) metrics_ = metrics;
  desk_.Tell([&](DeskContents& desk) {
    desk.gradients->End(task.run, minibatch);
    for (uint32_t i = 0; i < desk.gradients->blocks()->size(); ++i) desk.Filled(i);
    const auto took = desk_.Now() - minibatch_began_;
    desk.core->OnMinibatch(task.run, minibatch,
                           std::chrono::duration_cast<std::chrono::microseconds>(took));
    if (!desk.core->computes()) desk.Computed(desk_.Now());
  });
}

void GroupImpl::EndLoop(const sdk::TrainerTask& task) {
  // A vote says that everything is in the tables.
  const std::optional<RestoreEpoch> pushed_under =
      session_->AwaitStepPushes(RunNumber(static_cast<uint32_t>(task.run)));
  desk_.Tell([&](DeskContents& desk) {
    if (pushed_under.has_value()) desk.core->OnComputed(task.run, metrics_, *pushed_under);
    desk.Computed(desk_.Now());
  });
}

void GroupImpl::FailStep(const sdk::TrainerTask& task, std::string reason, bool fatal) {
  desk_.Tell(
      [&](DeskContents& desk) { desk.core->OnTrainerFailed(task.run, std::move(reason), fatal); });
}

absl::Status GroupImpl::AddValues(
    uint32_t bucket,
    absl::FunctionRef<absl::StatusOr<std::optional<sdk::SumMode>>(sdk::OwnGradients&)> begin,
    absl::FunctionRef<absl::Status(sdk::SumMode)> write,
    absl::FunctionRef<void(sdk::OwnGradients&, bool)> end) {
  MUSTER_ASSIGN_OR_RETURN(const std::optional<sdk::SumMode> mode,
                          desk_.Look([&](DeskContents& desk) { return begin(*desk.gradients); }));
  if (!mode.has_value()) return absl::OkStatus();
  const absl::Status written = write(*mode);
  desk_.TellOfBucket([&](DeskContents& desk) {
    end(*desk.gradients, written.ok());
    desk.Filled(desk.gradients->blocks()->PlaceOf(bucket).block);
  });
  return written;
}

absl::Status GroupImpl::Add(const sdk::TrainerTask& task, MinibatchIndex minibatch, uint32_t bucket,
                            std::span<const float> gradient) {
  return AddValues(
      bucket,
      [&](sdk::OwnGradients& gradients) {
        return gradients.BeginAdd(task.run, minibatch, bucket, gradient.size(),
                                  /*elsewhere=*/false);
      },
      [&](sdk::SumMode mode) { return gradients_->Write(bucket, gradient, mode); },
      [&](sdk::OwnGradients& gradients, bool good) {
        gradients.EndAdd(task.run, minibatch, bucket, good);
      });
}

absl::Status GroupImpl::AddDevice(const sdk::TrainerTask& task, MinibatchIndex minibatch,
                                  uint32_t bucket, const float* gradient, uint64_t elements,
                                  void* stream) {
  return AddValues(
      bucket,
      [&](sdk::OwnGradients& gradients) {
        return gradients.BeginAdd(task.run, minibatch, bucket, elements, /*elsewhere=*/true);
      },
      [&](sdk::SumMode mode) {
        return device_buckets_[bucket]->Add(reinterpret_cast<uint64_t>(gradient), stream,
                                            mode == sdk::SumMode::kStore);
      },
      [&](sdk::OwnGradients& gradients, bool good) {
        gradients.EndAdd(task.run, minibatch, bucket, good);
      });
}

absl::Status GroupImpl::Put(const sdk::TrainerTask& task, uint32_t bucket,
                            std::span<const float> values, std::string_view what) {
  return AddValues(
      bucket,
      [&](sdk::OwnGradients& gradients) {
        return gradients.BeginPut(task.run, bucket, values.size(), what);
      },
      [&](sdk::SumMode mode) { return gradients_->Write(bucket, values, mode); },
      [&](sdk::OwnGradients& gradients, bool good) { gradients.EndPut(task.run, bucket, good); });
}

absl::Status GroupImpl::CheckPut(const sdk::TrainerTask& task) {
  return desk_.Look([&](DeskContents& desk) { return desk.gradients->CheckPut(task.run); });
}

bool GroupImpl::TakeStateCopied() {
  return desk_.Look([](DeskContents& desk) { return std::exchange(desk.state_copied, false); });
}

LineageNumber GroupImpl::lineage() const {
  return desk_.Look([](DeskContents& desk) {
    const bool known = desk.core.has_value() && desk.core->state().has_value();
    return known ? desk.core->state()->lineage : LineageNumber();
  });
}

std::shared_ptr<StepTotals> GroupImpl::SumsOf(const sdk::TrainerTask& task) {
  return desk_.Look([&](DeskContents& desk) {
    std::shared_ptr<StepTotals> sums;
    if (task.kind == Kind::kReplay) {
      sums = desk.fetched;
    } else {
      sums = task.evaluation ? std::make_shared<StepTotals>() : desk.sums;
      // What a topic has of its offsets depends on when they are read, so nobody counts for itself.
      sums->facts.records = task.records;
    }
    sums->after = {desk.core->state()->lineage, task.step};
    return sums;
  });
}

void GroupImpl::ApplyFailed() {
  std::fprintf(stderr,
               "muster: apply has thrown: this member copies the state anew from the others\n");
  desk_.Tell([](DeskContents& desk) { desk.core->OnApplyFailed(); });
}

void GroupImpl::Applied(const std::shared_ptr<StepTotals>& sums) {
  // Others ask for sums that are kept, and any number of steps may be: not in the device's memory.
  bool here = device() == nullptr;
  while (true) {
    const bool applied = desk_.Tell([&](DeskContents& desk) {
      const bool keeps = desk.core->SumsKeptAfter().has_value();
      if (keeps && !here) return false;
      desk.core->OnApplied();
      if (keeps) desk.kept.Add(sums);
      if (desk.fetched == sums) desk.fetched = nullptr;
      if (desk.sums == sums) desk.sums = nullptr;
      desk.kept.Prune(desk.core->view().lineage, desk.core->SumsKeptAfter());
      return true;
    });
    if (applied) return;
    const absl::Status moved = sums->MoveToHost(device());
    here = true;
    if (!moved.ok()) return Fail(moved);
  }
}

}  // namespace muster::internal
