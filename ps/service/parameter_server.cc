#include "ps/service/parameter_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/backoff.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "base/status.h"
#include "base/usage/process_usage.h"
#include "base/version.h"

namespace muster::ps {
namespace {

using std::chrono::milliseconds;

/// Partitions that are fetched at the same time.
constexpr uint32_t kRestoresAtOnce = 4;
constexpr BackoffLimits kBackoff{.first = milliseconds(50), .longest = milliseconds(500)};
constexpr milliseconds kHeartbeatDefault{200};
constexpr std::chrono::seconds kAwayLogInterval{2};

bool MayPass(const absl::Status& status) {
  return status.code() == absl::StatusCode::kUnavailable ||
         status.code() == absl::StatusCode::kDeadlineExceeded ||
         status.code() == absl::StatusCode::kAborted ||
         status.code() == absl::StatusCode::kResourceExhausted;
}

/// True if a warm start that failed with this error may succeed later: a missing folder may come
/// back, but wrong contents stay wrong.
bool WaitingMayMend(const absl::Status& status) {
  return !absl::IsInvalidArgument(status) && !absl::IsFailedPrecondition(status) &&
         !absl::IsDataLoss(status);
}

}  // namespace

/// The newest reports of all lanes, filled in by their threads.
struct ParameterServer::Collector {
  Collector(const LaneReports::Options& options, size_t lanes) : reports(options, lanes) {}
  Mutex mutex;
  CondVar changed;
  LaneReports reports MUSTER_GUARDED_BY(mutex);
};

ParameterServer::ParameterServer(Options options, std::unique_ptr<MasterClient> master,
                                 StorageFactory storage, const Clock* clock)
    : options_(std::move(options)),
      master_(std::move(master)),
      make_storage_(std::move(storage)),
      clock_(clock),
      rng_(options_.nonce),
      restorer_(options_.name + " restore", WorkQueue::Priority::kNormal, kRestoresAtOnce),
      loader_(options_.name + " load"),
      writer_(options_.name + " write", WorkQueue::Priority::kLow) {
  context_.clock = clock_;
  context_.restorer = &restorer_;
  context_.loader = &loader_;
  context_.writer = &writer_;
  context_.images = &images_;
  context_.retry_pause = options_.retry_pause;
  context_.wake = [this] { Wake(); };
  context_.pump_all = [this] {
    for (const auto& lane : lanes_) lane->PostPump();
  };
}

ParameterServer::~ParameterServer() {
  StopThreads();
}

void ParameterServer::StopThreads() {
  restorer_.Stop();
  loader_.Stop();
  writer_.Stop();
  for (const auto& lane : lanes_) lane->Stop();
}

void ParameterServer::RequestStop() {
  {
    MutexLock lock(&mutex_);
    stop_ = true;
    changed_.SignalAll();
  }
  master_->Cancel();
}

void ParameterServer::RequestLeave() {
  {
    MutexLock lock(&mutex_);
    if (registered_) {
      leave_ = true;
      changed_.SignalAll();
      return;
    }
  }
  RequestStop();  // without a registration, there is nothing to snapshot
}

bool ParameterServer::Leaving(ControlState* state) {
  if (leave_by_.has_value()) return true;
  {
    MutexLock lock(&mutex_);
    if (!leave_) return false;
  }
  leave_by_ = clock_->Now() + options_.leave_timeout;
  state->Leave();
  Log(LogLevel::kInfo, "asked to end; it waits for the snapshots of its partitions, at most {} ms",
      options_.leave_timeout.count());
  return true;
}

void ParameterServer::Wake() {
  MutexLock lock(&mutex_);
  news_ = true;
  changed_.SignalAll();
}

bool ParameterServer::Wait(std::chrono::nanoseconds timeout, Until until) {
  const TimePoint deadline = clock_->Now() + timeout;
  MutexLock lock(&mutex_);
  const bool leaving = leave_by_.has_value();
  while (!stop_ && !(until == Until::kNews && news_) && leave_ == leaving) {
    const std::chrono::nanoseconds left = deadline - clock_->Now();
    if (left.count() <= 0) break;
    changed_.WaitFor(&mutex_, left);
  }
  if (until == Until::kNews) news_ = false;
  return !stop_;
}

std::optional<absl::Status> ParameterServer::EndIfAway(const MasterAbsence& absence,
                                                       const absl::Status& status) {
  const TimePoint now = clock_->Now();
  switch (absence.Judge(now)) {
    case MasterAbsence::Verdict::kOver:
      Log(LogLevel::kInfo, "the master is gone, and had nothing left to do for this server");
      return absl::OkStatus();
    case MasterAbsence::Verdict::kTooLong:
      return absl::UnavailableError(fmt::format(
          "the master has not answered for {} s, so this server ends; the job's state stays: {}",
          std::chrono::duration_cast<std::chrono::seconds>(options_.absence.max).count(),
          Message(status)));
    case MasterAbsence::Verdict::kGoOn:
      break;
  }
  if (away_logged_.has_value() && now - *away_logged_ < kAwayLogInterval) return std::nullopt;
  away_logged_ = now;
  Log(LogLevel::kWarning, "the master does not answer; trying again: {}", Message(status));
  return std::nullopt;
}

absl::Status ParameterServer::Run() {
  const auto addresses = Listen();
  if (absl::IsCancelled(addresses.status())) return absl::OkStatus();
  MUSTER_RETURN_IF_ERROR(addresses.status());
  const auto registered = Register(*addresses);
  absl::Status status = registered.status();
  if (status.ok()) {
    status = StartLanes(*registered);
  }
  if (status.ok()) {
    {
      MutexLock lock(&mutex_);
      registered_ = true;
    }
    status = Serve(*registered);
  }
  if (options_.on_end) options_.on_end();
  StopThreads();
  return absl::IsCancelled(status) ? absl::OkStatus() : status;
}

absl::StatusOr<ListenPlace> ParameterServer::FindPlace() {
  if (!options_.find_place)
    return ListenPlace{.host = "127.0.0.1", .advertise = "127.0.0.1", .ports = {}};
  Backoff backoff(kBackoff);
  bool logged = false;
  while (true) {
    absl::StatusOr<ListenPlace> place = options_.find_place();
    if (place.ok() || !absl::IsUnavailable(place.status())) return place;
    if (!std::exchange(logged, true)) {
      Log(LogLevel::kWarning, "it is not known yet where to listen; trying again: {}",
          Message(place.status()));
    }
    if (!Wait(backoff.Failed(&rng_), Until::kTimeout)) return absl::CancelledError("told to stop");
  }
}

absl::StatusOr<std::vector<std::vector<std::string>>> ParameterServer::Listen() {
  MUSTER_ASSIGN_OR_RETURN(const ListenPlace place, FindPlace());
  if (!options_.tls && !IsLoopbackHost(place.host)) {
    Log(LogLevel::kWarning,
        "INSECURE: this server listens at {} without TLS. Everybody who reaches it can read and "
        "change the weights",
        place.host);
  }
  std::vector<std::vector<std::string>> addresses;
  for (uint32_t i = 0; i < options_.lanes; ++i) {
    LaneOptions lane{.name = fmt::format("{}.{}", options_.name, i),
                     .unix_path = "",
                     .host = place.host,
                     .advertise = place.advertise,
                     .ports = place.ports,
                     .limits = options_.limits,
                     .tls = options_.tls,
                     .clock = clock_};
    if (!options_.socket_directory.empty()) {
      lane.unix_path = fmt::format("{}/{}.sock", options_.socket_directory, lane.name);
    }
    lanes_.push_back(std::make_unique<LaneServer>(std::move(lane), i, options_.lanes, &context_));
    MUSTER_ASSIGN_OR_RETURN(std::vector<std::string> one, lanes_.back()->Listen());
    addresses.push_back(std::move(one));
  }
  return addresses;
}

absl::StatusOr<RegisterServerReply> ParameterServer::Register(
    const std::vector<std::vector<std::string>>& addresses) {
  const RegisterServerRequest request{.name = options_.name,
                                      .nonce = options_.nonce,
                                      .lanes = addresses,
                                      .start = options_.start,
                                      .version = std::string(kCompatibleVersion)};
  const MasterAbsence absence(options_.absence, clock_->Now());
  Backoff backoff(kBackoff);
  while (true) {
    MUSTER_FAILPOINT("register.before-send");
    auto registered = master_->Register(request);
    if (registered.ok()) {
      MUSTER_FAILPOINT("register.after-reply");
      away_logged_.reset();
      Log(LogLevel::kInfo, "registered as server {}, incarnation {}, of job \"{}\"",
          registered->id.value(), registered->incarnation.value(), registered->job);
      return registered;
    }
    if (absl::IsCancelled(registered.status())) return registered.status();
    if (!MayPass(registered.status())) {
      return Annotate(registered.status(), fmt::format("{} cannot register", options_.name));
    }
    if (const auto end = EndIfAway(absence, registered.status())) return *end;
    if (!Wait(backoff.Failed(&rng_), Until::kTimeout)) return absl::CancelledError("stopped");
  }
}

absl::Status ParameterServer::StartLanes(const RegisterServerReply& registered) {
  partition_count_ = registered.partition_count;
  MUSTER_ASSIGN_OR_RETURN(storage_, make_storage_(registered));
  context_.storage = storage_.get();
  collector_ = std::make_shared<Collector>(
      LaneReports::Options{options_.lane_patience, options_.lane_silence_max}, lanes_.size());
  for (const auto& lane : lanes_) lane->Start(registered);
  return absl::OkStatus();
}

bool ParameterServer::ToldToEnd() {
  MutexLock lock(&mutex_);
  return stop_ || leave_;
}

std::vector<LaneReport> ParameterServer::CollectReports(uint64_t sequence) {
  MutexLock lock(&collector_->mutex);
  LaneReports& reports = collector_->reports;
  for (const size_t i : reports.Begin(clock_->Now())) {
    lanes_[i]->PostReport(sequence, [this, collector = collector_, i](LaneReport report) {
      bool late = false;
      {
        MutexLock lane_lock(&collector->mutex);
        late = collector->reports.Answered(i, std::move(report));
        collector->changed.SignalAll();
      }
      if (late) Wake();
    });
  }
  while (true) {
    const auto hanging =
        ToldToEnd() ? LaneReports::Hanging::kAreNot : LaneReports::Hanging::kAreAwaited;
    const std::chrono::nanoseconds wait = reports.Wait(clock_->Now(), hanging);
    if (wait.count() == 0) return reports.Take();
    collector_->changed.WaitFor(&collector_->mutex, wait);
  }
}

absl::Status ParameterServer::Serve(const RegisterServerReply& registered) {
  ControlState state(registered, options_.lanes);
  MasterAbsence absence(options_.absence, clock_->Now());
  milliseconds interval = registered.heartbeat_interval;
  Backoff backoff(kBackoff);
  ProcessUsageMeter usage;
  while (true) {
    const bool leaving = Leaving(&state);
    const uint64_t sequence = state.NextSequence();
    const std::vector<LaneReport> reports = CollectReports(sequence);
    AdvanceWarmStarts(reports);
    ServerExchangeRequest request = state.MakeRequest(reports, Errors());
    request.usage = usage.Read(clock_->Now());
    if (!request.snapshots.empty()) MUSTER_FAILPOINT("report.before-send");
    const auto reply = master_->Exchange(request);
    if (!request.snapshots.empty()) MUSTER_FAILPOINT("report.after-reply");
    if (!reply.ok()) {
      if (absl::IsCancelled(reply.status())) return absl::OkStatus();
      if (const auto end = EndIfAway(absence, reply.status())) return *end;
      if (leaving) return absl::OkStatus();  // no master would accept its snapshots
      if (!Wait(backoff.Failed(&rng_), Until::kTimeout)) return absl::OkStatus();
      continue;
    }
    backoff.Succeeded();
    absence.Answered(clock_->Now(), reply->drained);
    if (away_logged_.has_value()) {
      Log(LogLevel::kInfo, "the master answers again, incarnation {}",
          reply->master_incarnation.value());
      away_logged_.reset();
    }
    auto orders = state.OnReply(*reply);
    if (absl::IsAborted(orders.status())) {
      Log(LogLevel::kWarning, "{}", Message(orders.status()));
    } else if (!orders.ok()) {
      return orders.status();
    } else {
      for (const TableSpec& table : orders->tables) {  // before the partitions that have them
        AddTable(table);
        state.TableAdded(table.id);
      }
      for (size_t i = 0; i < lanes_.size(); ++i) {
        lanes_[i]->PostCommands(std::move(orders->lanes[i]));
      }
    }
    if (leaving && orders.ok() && orders->drained) return absl::OkStatus();
    if (leaving && clock_->Now() >= *leave_by_) {
      Log(LogLevel::kWarning, "it ends and no longer waits for the snapshots of its partitions");
      return absl::OkStatus();
    }
    if (reply->heartbeat_interval.count() > 0) interval = reply->heartbeat_interval;
    if (interval.count() <= 0) interval = kHeartbeatDefault;
    if (!Wait(interval, Until::kNews)) return absl::OkStatus();
  }
}

void ParameterServer::AddTable(const TableSpec& table) {
  if (!table.warm_start_directory.empty()) {
    auto warm_start = std::make_shared<WarmStart>();
    warm_start->spec = table;
    warm_starts_.emplace(table.id, std::move(warm_start));
  }
  for (const auto& lane : lanes_) lane->PostTable(table);
}

void ParameterServer::AdvanceWarmStarts(const std::vector<LaneReport>& reports) {
  std::set<TableId> wanted;
  for (const LaneReport& report : reports) {
    wanted.insert(report.warm_starts_wanted.begin(), report.warm_starts_wanted.end());
  }
  for (const auto& [id, table] : warm_starts_) {
    std::optional<WarmStart::Result> result;
    {
      MutexLock lock(&mutex_);
      result.swap(table->result);
    }
    if (result.has_value()) EndWarmStart(*result, table.get());
    if (!wanted.contains(id)) {
      table->error.clear();
    } else if (!table->loading && !table->over && clock_->Now() >= table->not_before) {
      BeginWarmStart(table);
    }
  }
}

void ParameterServer::BeginWarmStart(const std::shared_ptr<WarmStart>& table) {
  table->loading = true;
  loader_.Post([this, table, count = partition_count_] {
    WarmStart::Result result = storage_->OpenWarmStart(table->spec, count);
    if (!result.ok()) {
      result = Annotate(result.status(),
                        fmt::format("cannot warm-start table \"{}\"", table->spec.name));
    }
    {
      MutexLock lock(&mutex_);
      table->result = std::move(result);
    }
    Wake();
  });
}

void ParameterServer::EndWarmStart(const WarmStart::Result& result, WarmStart* table) {
  table->loading = false;
  if (result.ok()) {
    table->over = true;
    table->error.clear();
    for (const auto& lane : lanes_) lane->PostWarmStart(table->spec.id, *result);
    return;
  }
  const std::string text(Message(result.status()));
  Log(LogLevel::kError, "{}", text);
  if (WaitingMayMend(result.status())) {
    table->error = text;
    table->not_before = clock_->Now() + options_.warm_start_pause;
  } else {
    table->over = true;
    fatal_error_ = text;
  }
}

ControlState::Errors ParameterServer::Errors() const {
  ControlState::Errors errors{.warm_start = "", .fatal = fatal_error_};
  for (const auto& [id, table] : warm_starts_) {
    if (errors.warm_start.empty()) errors.warm_start = table->error;
  }
  return errors;
}

}  // namespace muster::ps
