#include "worker_sdk/session/session_impl.h"
#include "worker_sdk/readers/data_root.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sys/random.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <utility>

#include "base/failpoint.h"
#include "base/status.h"
#include "proto/exported/exported_table.h"
#include "worker_sdk/core/held_rows.h"

namespace muster::internal {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kCallTimeout{2'000};
constexpr milliseconds kRetryEvery{50};
/// How many of the shards that come next are announced to their readers.
constexpr size_t kSoonMax = 32;

/// A number that only the calling thread has.
sdk::FirstAlone::ThreadNumber ThisThread() {
  static std::atomic<sdk::FirstAlone::ThreadNumber> newest{0};
  thread_local const sdk::FirstAlone::ThreadNumber number = ++newest;
  return number;
}

uint64_t RandomIncarnation() {
  uint64_t value = 0;
  while (value == 0) {
    if (::getrandom(&value, sizeof(value), 0) != sizeof(value)) value = 0;
  }
  return value;
}

/// The same call may succeed later.
bool Transient(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) ||
         absl::IsResourceExhausted(status) || absl::IsAborted(status) || absl::IsInternal(status) ||
         absl::IsCancelled(status) || absl::IsUnknown(status);
}

/// Calls until it succeeds, fails for good, or options.connect_timeout_ms have passed.
template <typename Call>
auto CallUntil(const Clock& clock, const SessionOptions& options, Call call) -> decltype(call()) {
  const milliseconds limit(options.connect_timeout_ms);
  TimePoint begin = clock.Now(), said = begin;
  while (true) {
    auto result = call();
    if (result.ok() || !Transient(result.status()) || clock.Now() - begin >= limit) return result;
    if (options.interrupted && options.interrupted()) {
      return absl::CancelledError("interrupted while waiting for the master");
    }
    if (clock.Now() - said >= sdk::kWaitingLineAfter) {
      said = clock.Now();
      std::fprintf(stderr, "muster: waiting for the master (%lld s): %s\n",
                   static_cast<long long>((said - begin) / std::chrono::seconds(1)),
                   std::string(Message(result.status())).c_str());
    }
    SleepFor(kRetryEvery);
  }
}

absl::Status CheckHello(const HelloResponse& hello) {
  MUSTER_RETURN_IF_ERROR(CheckJobId("the id that the master answers", hello.job_id));
  if (hello.job_id.empty()) {
    return absl::InternalError(
        "the master does not say which job it has: build both from the same release");
  }
  if (hello.partition_count == 0 || hello.partition_count > (1u << 16)) {
    return absl::InternalError(
        fmt::format("the master says that the job has {} partitions", hello.partition_count));
  }
  if (hello.wire_encoding != "float32" && hello.wire_encoding != "float16" &&
      hello.wire_encoding != "bfloat16") {
    return absl::InternalError(
        fmt::format("the master asks for the unknown wire encoding \"{}\"", hello.wire_encoding));
  }
  return absl::OkStatus();
}

wire::Encoding EncodingOf(const std::string& name) {
  if (name == "float16") return wire::Encoding::kFloat16;
  return name == "bfloat16" ? wire::Encoding::kBfloat16 : wire::Encoding::kFloat32;
}

std::vector<PartitionId> IdentityOrder(uint32_t partitions) {
  std::vector<PartitionId> order;
  for (uint32_t p = 0; p < partitions; ++p) order.push_back(PartitionId(p));
  return order;
}

}  // namespace

absl::StatusOr<std::unique_ptr<SessionImpl>> SessionImpl::Connect(const SessionOptions& options) {
  if (options.master_address.empty() || options.worker_name.empty()) {
    return absl::InvalidArgumentError(
        "the master's address or this worker's name is not given: start the trainer with "
        "`muster run`, or set MUSTER_MASTER (\"127.0.0.1:7070\") and MUSTER_NODE (\"worker-0\")");
  }
  MUSTER_RETURN_IF_ERROR(CheckJobId("MUSTER_JOB_ID", options.job_id));
  MUSTER_RETURN_IF_ERROR(ArmFailpointsFromEnvironment());
  uint64_t incarnation = RandomIncarnation();
  SystemClock clock;
  MUSTER_ASSIGN_OR_RETURN(SessionTls tls, MakeSessionTls(options));
  sdk::ControlClient client(options.master_address, options.worker_name, {options.job_id, ""},
                            tls.master);
  MUSTER_ASSIGN_OR_RETURN(HelloResponse hello, CallUntil(clock, options, [&] {
                            return client.Hello(incarnation, options.start, kCallTimeout);
                          }));
  MUSTER_RETURN_IF_ERROR(CheckHello(hello));
  std::unique_ptr<SessionImpl> session(
      new SessionImpl(options, std::move(tls), std::move(hello), incarnation));
  session->data_->Start();
  session->control_ = std::thread([raw = session.get()] { raw->RunControl(); });
  pthread_setname_np(session->control_.native_handle(), "muster-control");
  return session;
}

SessionImpl::SessionImpl(SessionOptions options, SessionTls tls, HelloResponse hello,
                         uint64_t incarnation)
    : options_(std::move(options)),
      incarnation_(incarnation),
      tls_(std::move(tls)),
      hello_(std::move(hello)),
      encoding_(EncodingOf(hello_.wire_encoding)),
      started_(clock_.Now()),
      readers_(hello_),
      outputs_(hello_.job_id),
      slot_(options_.slot_file, incarnation),
      core_({options_.worker_name, incarnation, hello_.group ? 0 : hello_.shards_ahead,
             milliseconds(std::max<uint64_t>(hello_.heartbeat_interval_ms, 1))}),
      order_(
          std::make_shared<const std::vector<PartitionId>>(IdentityOrder(hello_.partition_count))),
      first_alone_(options_.start > 1) {
  sdk::DataClient::Options data;
  data.job = JobOf(hello_);
  data.worker = options_.worker_name;
  data.partition_count = hello_.partition_count;
  data.encoding = encoding_;
  data.tls = tls_.servers;
  data_ = std::make_unique<sdk::DataClient>(std::move(data),
                                            static_cast<sdk::DataClient::Listener*>(this));
}

absl::StatusOr<TableId> SessionImpl::RegisterWithMaster(TableSpec* spec) {
  sdk::ControlClient client(options_.master_address, options_.worker_name, JobOf(hello_),
                            tls_.master);
  const auto call = [&] {
    return CallUntil(clock_, options_, [&] { return client.RegisterTable(*spec, kCallTimeout); });
  };
  absl::StatusOr<TableId> id = call();
  if (!absl::IsNotFound(id.status()) || spec->warm_start_directory.empty()) return id;
  // Only the first worker that registers the table checks the export. Later workers need not have
  // it.
  std::fprintf(stderr, "muster: table \"%s\" starts from %s: checking the export\n",
               spec->name.c_str(), spec->warm_start_directory.c_str());
  const absl::StatusOr<ExportedTable> exported = ExportedTable::Open(*spec);
  if (!exported.ok()) {
    return absl::FailedPreconditionError(fmt::format(
        "table \"{}\" cannot start from its export: {}", spec->name, Message(exported.status())));
  }
  spec->warm_start_hash = exported->hash();
  return call();
}

absl::StatusOr<TableSpec> SessionImpl::Register(absl::StatusOr<TableSpec> spec) {
  absl::Status status = MayHaveTables();
  if (status.ok()) status = spec.status();
  if (status.ok() && spec->warm_start_directory.empty()) {
    spec->warm_start_directory = sdk::PathHere(options_.data_root, hello_.warm_start);
  }
  if (status.ok()) {
    const absl::StatusOr<TableId> id = RegisterWithMaster(&*spec);
    status = id.status();
    if (id.ok()) spec->id = *id;
  }
  MutexLock lock(&mutex_);
  if (!status.ok()) {
    FailLocked(status);
    return status;
  }
  tables_.try_emplace(spec->id, *spec);
  return spec;
}

const TableSpec* SessionImpl::FindTable(TableId id) {
  MutexLock lock(&mutex_);
  auto it = tables_.find(id);
  if (it != tables_.end()) return &it->second;
  FailLocked(absl::InvalidArgumentError(fmt::format(
      "table {} is not one of this session: use what SparseTable or DenseTable returned",
      id.value())));
  return nullptr;
}

std::optional<SessionImpl::NextResult> SessionImpl::NextShard() {
  if (hello_.group) ProgramError("NextShard in a job with spec.group: use Session::Group");
  const sdk::FirstAlone::ThreadNumber thread = ThisThread();
  while (true) {
    std::optional<sdk::ShardRun> shard;
    std::vector<ShardWork> soon;
    Effects effects;
    {
      MutexLock lock(&mutex_);
      core_.SetWaiting(++waiting_loops_);
      WakeControl();
      WaitUntil(
          [&]() MUSTER_NO_THREAD_SAFETY_ANALYSIS {
            return !failure_.ok() || core_.draining() ||
                   (core_.queued() > 0 && first_alone_.MayTake(thread, clock_.Now()));
          },
          first_alone_.MayTake(thread, clock_.Now())
              ? "a shard"
              : "the first shard after a restart, which runs alone",
          &times_.wait_shard);
      core_.SetWaiting(--waiting_loops_);
      if (failure_.ok()) soon = core_.TakeSoon(kSoonMax);
      if (failure_.ok()) shard = core_.TakeShard();
      if (shard) first_alone_.Took(thread, shard->grant.token, clock_.Now());
      effects = TakeEffects();
      if (shard) times_.wait_shard.Enter(clock_.Now());
    }
    CarryOut(std::move(effects));
    if (!shard) return std::nullopt;
    readers_.Expect(soon);
    slot_.Enter(shard->grant.token);
    absl::StatusOr<NextResult> next = ReadShard(*shard);
    {
      MutexLock lock(&mutex_);
      times_.wait_shard.Leave(clock_.Now());
      if (next.ok()) read_backoff_.Succeeded();
    }
    if (next.ok()) return *std::move(next);
    if (absl::IsCancelled(next.status())) {
      GiveUp({shard->grant.token, shard->run});
      continue;
    }
    if (absl::IsResourceExhausted(next.status())) {
      HandBackAndRest({shard->grant.token, shard->run}, std::string(Message(next.status())),
                      &read_backoff_);
      continue;
    }
    // Every other worker would find the same wrong file, so no retry helps.
    bool fatal = absl::IsFailedPrecondition(next.status()) || absl::IsNotFound(next.status());
    std::string reason(Message(next.status()));
    std::fprintf(stderr, "muster: %s\n", reason.c_str());
    GiveUp({shard->grant.token, shard->run}, sdk::ShardFailure{std::move(reason), fatal});
  }
}

absl::StatusOr<SessionImpl::NextResult> SessionImpl::ReadShard(const sdk::ShardRun& shard) {
  const ShardWork& work = shard.grant.work;
  MUSTER_ASSIGN_OR_RETURN(sdk::ShardReader * reader, readers_.Of(work));
  MUSTER_ASSIGN_OR_RETURN(sdk::ShardRecords records,
                          reader->Read(work, WaitingFor({shard.grant.token, shard.run},
                                                        reader->NameOf(work), /*leaving=*/false)));
  return NextResult{shard, reader, std::move(records)};
}

void SessionImpl::EnterLoop() {
  MutexLock lock(&mutex_);
  times_.loop.Enter(clock_.Now());
}

void SessionImpl::LeaveLoop() {
  MutexLock lock(&mutex_);
  times_.loop.Leave(clock_.Now());
}

bool SessionImpl::StartMinibatch(const RunRef& run) {
  {
    MutexLock lock(&mutex_);
    if (!failure_.ok() || !core_.StartMinibatch(run.token, run.run)) return false;
    ++times_.minibatches_begun;
  }
  slot_.Minibatch(run.token);
  return true;
}

bool SessionImpl::Holds(const RunRef& run) {
  MutexLock lock(&mutex_);
  return core_.Holds(run.token, run.run);
}

void SessionImpl::FinishEvaluated(size_t records) {
  MutexLock lock(&mutex_);
  ++times_.minibatches_finished;
  times_.records_evaluated += records;
}

void SessionImpl::CommitMinibatch(const RunRef& run, MinibatchIndex minibatch, size_t records,
                                  std::span<const milliseconds> timestamps,
                                  std::shared_ptr<const sdk::RowBatch> batch) {
  // The wall clock is read once. All later times are on the monotonic clock.
  const TimePoint now = clock_.Now();
  const WallTime wall = clock_.Wall();
  sdk::PooledVector<TimePoint> born;
  born.reserve(timestamps.size());
  const auto latest = std::chrono::duration_cast<milliseconds>(wall);
  for (const milliseconds timestamp : timestamps) {
    born.push_back(now - (latest - std::min(timestamp, latest)));
  }
  Effects effects;
  {
    MutexLock lock(&mutex_);
    if (!failure_.ok()) return;
    if (core_.CommitMinibatch(run.token, run.run, minibatch, std::move(batch), clock_.Now(),
                              std::move(born))) {
      ++times_.minibatches_finished;
      times_.records_trained += records;
    }
    effects = TakeEffects();
  }
  CarryOut(std::move(effects));
  WaitForAnswers(
      [&]() MUSTER_NO_THREAD_SAFETY_ANALYSIS {
        return !failure_.ok() || !core_.Holds(run.token, run.run) ||
               (core_.outstanding_pushes() <= hello_.unacknowledged_minibatches_max &&
                sdk::MayHold(core_.outstanding_pushes(), core_.outstanding_push_floats()));
      },
      "the servers to acknowledge pushes", &times_.wait_push);
}

absl::Status SessionImpl::WriteOutput(const RunRef& run, const std::string& place,
                                      const std::string& name, std::string_view bytes) {
  const std::string here = sdk::PathHere(options_.data_root, place);
  uint64_t write = 0;
  {
    MutexLock lock(&mutex_);
    if (!failure_.ok() || !core_.SawAllPushes(run.token, run.run)) {
      return absl::AbortedError("the lease is lost, or a server came back with older weights");
    }
    write = unwritten_.Begin(here + "/" + name, bytes.size(), clock_.Now());
  }
  absl::Status written = outputs_.Write(here, name, bytes);
  // A disk that is full or away may be back for the next try.
  if (Transient(written)) written = absl::UnavailableError(std::string(Message(written)));
  MutexLock lock(&mutex_);
  unwritten_.End(write, written);
  if (written.ok()) write_backoff_.Succeeded();
  return written;
}

void SessionImpl::AwaitRoomForGradients(const RunRef& run, uint64_t floats) {
  sdk::DeliveryId since;
  {
    MutexLock lock(&mutex_);
    since = core_.next_delivery();
  }
  WaitForAnswers(
      [&]() MUSTER_NO_THREAD_SAFETY_ANALYSIS {
        return core_.MayGather(floats, since) || !failure_.ok() || !core_.Holds(run.token, run.run);
      },
      "the servers to acknowledge pushes", &times_.wait_push);
}

void SessionImpl::LeftLoop(LeaseToken token, sdk::FirstAlone::How how) {
  first_alone_.Left(token, how);
  changed_.SignalAll();
}

void SessionImpl::CompleteShard(const RunRef& run, ShardMetrics metrics) {
  slot_.Leave(run.token);
  std::string not_pushed;
  Effects effects;
  {
    MutexLock lock(&mutex_);
    not_pushed = core_.CompleteShard(run.token, run.run, std::move(metrics));
    LeftLoop(run.token, sdk::FirstAlone::How::kCompleted);
    effects = TakeEffects();
  }
  if (!not_pushed.empty()) std::fprintf(stderr, "muster: %s\n", not_pushed.c_str());
  CarryOut(std::move(effects));
}

void SessionImpl::GiveUp(const RunRef& run, std::optional<sdk::ShardFailure> failure) {
  slot_.Leave(run.token);
  if (failure && failure->reason.empty()) failure->reason = "the trainer gave no reason";
  Effects effects;
  {
    MutexLock lock(&mutex_);
    core_.GiveUp(run.token, run.run, std::move(failure));
    LeftLoop(run.token, sdk::FirstAlone::How::kGivenUp);
    effects = TakeEffects();
  }
  CarryOut(std::move(effects));
}

sdk::DeliveryId SessionImpl::StartPull(std::shared_ptr<const sdk::RowBatch> batch) {
  sdk::DeliveryId id;
  Effects effects;
  {
    MutexLock lock(&mutex_);
    id = core_.StartPull(std::move(batch), clock_.Now());
    effects = TakeEffects();
  }
  CarryOut(std::move(effects));
  return id;
}

std::optional<sdk::PullRows> SessionImpl::WaitPull(const RunRef& run, sdk::DeliveryId id) {
  WaitForAnswers(
      [&]() MUSTER_NO_THREAD_SAFETY_ANALYSIS {
        return core_.PullReady(id) || !failure_.ok() || !core_.Holds(run.token, run.run);
      },
      "rows", &times_.wait_pull);
  MutexLock lock(&mutex_);
  if (core_.PullReady(id)) return core_.TakePull(id);
  core_.CancelPull(id);
  return std::nullopt;
}

void SessionImpl::CancelPull(sdk::DeliveryId id) {
  MutexLock lock(&mutex_);
  core_.CancelPull(id);
}

std::shared_ptr<const std::vector<PartitionId>> SessionImpl::sending_order() {
  MutexLock lock(&mutex_);
  return order_;
}

void SessionImpl::ProgramError(std::string message) {
  MutexLock lock(&mutex_);
  FailLocked(absl::InvalidArgumentError(message));
}

void SessionImpl::FailLocked(absl::Status status) {
  if (!failure_.ok()) return;
  std::fprintf(stderr, "muster: %s\n", std::string(Message(status)).c_str());
  failure_ = std::move(status);
  core_.Abandon();
  changed_.SignalAll();
  WakeControl();
}

absl::Status SessionImpl::status() {
  MutexLock lock(&mutex_);
  return failure_;
}

void SessionImpl::Leave() {
  MutexLock lock(&mutex_);
  leaving_ = true;
  core_.Leave();
  if (!told_to_stop_) slot_.End();
  told_to_stop_ = true;
  changed_.SignalAll();
  WakeControl();
}

}  // namespace muster::internal
