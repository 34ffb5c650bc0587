#include "kubernetes/pods/pod_host.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "base/status.h"
#include "kubernetes/model/api_error.h"
#include "kubernetes/pods/former_pods.h"
#include "kubernetes/pods/pod_log.h"

namespace muster::kubernetes {
namespace {

constexpr std::chrono::minutes kCountInterval{1};
/// How often EndRun() tries failed deletions again.
constexpr std::chrono::milliseconds kEndTick{100};
constexpr std::chrono::seconds kBeatInterval{1};

PodBookOptions BookOptions(const PodHostOptions& options) {
  PodBookOptions book = options.book;
  book.run = options.run;
  book.seed = options.seed;
  return book;
}

}  // namespace

PodHost::PodHost(Client* client, const Clock* clock, PodHostOptions options)
    : client_(client),
      clock_(clock),
      options_(std::move(options)),
      book_(BookOptions(options_)),
      unreachable_(absl::UnavailableError("the API server has not answered yet")),
      counted_at_(clock->Now()),
      threads_(std::make_unique<CallThreads>(options_.threads)) {
  MUSTER_CHECK_MSG(wake_.get() >= 0, "cannot create an eventfd");
}

PodHost::~PodHost() {
  std::unique_ptr<CallThreads> threads;
  {
    const MutexLock lock(&mutex_);
    threads = std::move(threads_);
  }
  // They use the watcher, so they end first. The watcher may still report changes.
  threads.reset();
}

// The core of the host.

void PodHost::Change(const std::function<void(PodBook*, TimePoint now)>& change) {
  const MutexLock lock(&mutex_);
  change(&book_, clock_->Now());
  Follow();
}

void PodHost::Follow() {
  for (PodCall& call : book_.TakeCalls()) {
    if (threads_ == nullptr) break;  // the host ends
    threads_->Post(
        [this, call = std::move(call)](const std::stop_token& stop) { Carry(call, stop); });
  }
  for (const std::string& note : book_.TakeNotes()) Log(LogLevel::kWarning, "{}", note);
  changed_.SignalAll();
  if (book_.has_reports()) wake_.Wake();
}

void PodHost::OnChanges(const WatchCache::Changes& changes, const WatchCache::Objects&) {
  const MutexLock lock(&mutex_);
  const TimePoint now = clock_->Now();
  if (!found_) {
    std::vector<PodFacts> pods;
    for (const ObjectChange& change : changes) pods.push_back(ReadPodFacts(*change.object));
    found_ = book_.Find(pods, now);
    return Follow();
  }
  for (const ObjectChange& change : changes) {
    const PodFacts facts = ReadPodFacts(*change.object);
    if (change.kind == ObjectChange::Kind::kDeleted) {
      book_.Gone(facts, now);
    } else {
      book_.Seen(facts, now);
    }
  }
  Follow();
}

// Calls. Each runs on a thread of CallThreads.

ObjectPlace PodHost::PlaceOf(const std::string& pod, std::string subresource) const {
  return {.resource = Resource::kPods,
          .ns = options_.run.ns,
          .name = pod,
          .subresource = std::move(subresource)};
}

absl::StatusOr<nlohmann::json> PodHost::Ask(const PodCall& call, const std::stop_token& stop) {
  switch (call.kind) {
    case PodCall::Kind::kCreate:
      return client_->Create(Resource::kPods, options_.run.ns,
                             PodBody(options_.run, options_.templates, call.start), stop);
    case PodCall::Kind::kGet:
      return client_->Get(PlaceOf(call.name), stop);
    case PodCall::Kind::kDelete:
      return client_->Delete(PlaceOf(call.name), {.uid = call.uid, .grace = call.grace}, stop);
    case PodCall::Kind::kResize:
    case PodCall::Kind::kLookForJob:
      break;
  }
  return client_->Patch(PlaceOf(call.name, "resize"), PatchKind::kStrategicMerge,
                        ResizePatch(call.uid, call.container, call.limits, call.requests), stop);
}

void PodHost::LookForJob(const PodCall& call, const std::stop_token& stop) {
  const absl::StatusOr<ObjectList> pods =
      client_->List(Resource::kPods, options_.run.ns, PodsOfAllRuns(options_.run), stop);
  if (stop.stop_requested()) return;  // the host ends
  const PodAnswer answer{.id = call.id,
                         .status = pods.status(),
                         .job_is_there = !pods.ok() || IsJobThere(options_.run, pods->items)};
  Change([&](PodBook* book, TimePoint now) { book->Answered(answer, now); });
}

void PodHost::Carry(const PodCall& call, const std::stop_token& stop) {
  if (call.kind == PodCall::Kind::kLookForJob) return LookForJob(call, stop);
  absl::StatusOr<nlohmann::json> pod = Ask(call, stop);
  if (stop.stop_requested()) return;  // the host ends
  PodAnswer answer{.id = call.id, .status = pod.status()};
  // The answer to a deletion may be the last state of a pod that is gone, so it is left out.
  if (pod.ok() && call.kind != PodCall::Kind::kDelete) {
    answer.pod = ReadPodFacts(*pod);
    if (answer.pod->run == options_.run.run) watcher_->Apply(*std::move(pod));
  }
  Change([&](PodBook* book, TimePoint now) { book->Answered(answer, now); });
}

std::string PodHost::WhyAbandoned() const {
  const MutexLock lock(&mutex_);
  if (!book_.orphaned()) return "";
  return fmt::format(
      "the Job {} was deleted without its pods (--cascade=orphan), so nobody would start master "
      "and "
      "scaler again; the job is drained, and `muster run --on kubernetes` continues it",
      options_.run.job);
}

// Orders.

void PodHost::WaitForChange(TimePoint end) {
  if (options_.beat) options_.beat();
  changed_.WaitFor(&mutex_, std::min<std::chrono::nanoseconds>(end - clock_->Now(), kBeatInterval));
}

absl::StatusOr<std::vector<FoundNode>> PodHost::Find() {
  WatcherOptions options{.resource = Resource::kPods,
                         .ns = options_.run.ns,
                         .selection = PodsOf(options_.run),
                         .seed = options_.seed};
  options.on_changes = [this](const auto& changes, const auto& objects) {
    OnChanges(changes, objects);
  };
  options.on_error = [this](const absl::Status& status, std::chrono::milliseconds wait) {
    Log(LogLevel::kWarning, "pods cannot be watched, next try in {} ms: {}", wait.count(),
        Message(status));
    const MutexLock lock(&mutex_);
    unreachable_ = status;
    changed_.SignalAll();
  };
  MUSTER_CHECK_MSG(watcher_ == nullptr, "Find() is called once");
  watcher_ = std::make_unique<Watcher>(client_, clock_, std::move(options));
  const TimePoint end = clock_->Now() + options_.find_patience;
  const MutexLock lock(&mutex_);
  while (!found_ && clock_->Now() < end) {
    if (KindOf(unreachable_) == ApiErrorKind::kNotFound) break;
    WaitForChange(end);
  }
  if (found_) return *found_;
  const absl::Status error = Annotate(unreachable_, "the pods of this run cannot be listed");
  // An API server that has just started forbids everything until it knows the rights.
  if (KindOf(unreachable_) != ApiErrorKind::kForbidden) return error;
  return absl::UnavailableError(error.message());
}

void PodHost::Discard(const FoundNode& node) {
  Change([&](PodBook* book, TimePoint now) { book->Discard(node, now); });
}

NodeExited PodHost::DeathOf(const std::string& node, uint32_t start) const {
  const MutexLock lock(&mutex_);
  return book_.DeathOf(node, start);
}

absl::Status PodHost::Start(const StartNode& start) {
  MUSTER_CHECK_MSG(watcher_ != nullptr, "Find() comes first");
  MUSTER_RETURN_IF_ERROR(CheckObjectName(PodName(options_.run, start.node, start.start)));
  Change([&](PodBook* book, TimePoint now) { book->Start(start, now); });
  return absl::OkStatus();
}

void PodHost::Stop(const std::string& node, std::chrono::milliseconds timeout) {
  Change([&](PodBook* book, TimePoint now) { book->Stop(node, timeout, now); });
}

void PodHost::Kill(const std::string& node) {
  Change([&](PodBook* book, TimePoint now) { book->Kill(node, now); });
}

absl::Status PodHost::SetLimits(const std::string& node, const Resources& limits) {
  absl::Status status;
  Change([&](PodBook* book, TimePoint now) { status = book->SetLimits(node, limits, now); });
  return status;
}

absl::Status PodHost::DumpStacks(const std::string& node) {
  const MutexLock lock(&mutex_);
  if (!book_.IsRunning(node)) return absl::NotFoundError(fmt::format("{} is not running", node));
  return absl::UnimplementedError(fmt::format(
      "{} runs in a pod, whose stacks cannot be had from outside; `kubectl --namespace {} exec {} "
      "-- sh -c 'kill -QUIT 1'` writes them into its log",
      node, options_.run.ns, book_.PodOf(node)->name));
}

void PodHost::Release(const std::string& node) {
  Change([&](PodBook* book, TimePoint now) { book->Release(node, now); });
}

bool PodHost::Has(const std::string& node) const {
  const MutexLock lock(&mutex_);
  return book_.Has(node);
}

std::vector<HostReport> PodHost::TakeReports() {
  wake_.Clear();
  const MutexLock lock(&mutex_);
  const TimePoint now = clock_->Now();
  if (found_) book_.OnTime(now);
  CountRequests(now);
  std::vector<HostReport> reports = book_.TakeReports();
  Follow();
  return reports;
}

void PodHost::CountRequests(TimePoint now) {
  if (now - counted_at_ < kCountInterval) return;
  counted_at_ = now;
  const uint64_t before = std::exchange(counted_, client_->requests());
  Log(LogLevel::kInfo, "{} requests to the API server in the last minute", counted_ - before);
}

void PodHost::EndRun() {
  const TimePoint end = clock_->Now() + options_.end_patience;
  Change([](PodBook* book, TimePoint now) { book->EndRun(now); });
  const MutexLock lock(&mutex_);
  while (!book_.IsClear() && clock_->Now() < end) {
    WaitForChange(clock_->Now() + kEndTick);
    book_.OnTime(clock_->Now());
    Follow();
  }
  // The remaining pods are deleted together with the Job that owns them.
  if (!book_.IsClear()) Log(LogLevel::kWarning, "not all pods of the run could be deleted");
}

// Usage of nodes.

absl::StatusOr<NodeUsage> PodHost::Usage(const std::string& node) {
  const MutexLock lock(&mutex_);
  if (!book_.IsRunning(node)) return absl::NotFoundError(fmt::format("{} is not running", node));
  return absl::UnavailableError(fmt::format("{} tells the master itself what it uses", node));
}

absl::StatusOr<NodeUsage> PodHost::UsageOfProcess(uint64_t pid) {
  if (options_.usage_of_process) return options_.usage_of_process(pid);
  return absl::UnimplementedError("this host does not know what processes use");
}

// Logs.

absl::StatusOr<LogPiece> PodHost::ReadLog(const std::string& node,
                                          const LogQuestion& question) const {
  std::vector<PodFacts> pods;
  {
    const MutexLock lock(&mutex_);
    pods = book_.PodsOfNode(node);
  }
  if (pods.empty()) return absl::NotFoundError(fmt::format("{} has no pod, so no log", node));
  return ReadPodLogs(pods, question, [this](const std::string& pod, const LogQuery& query) {
    return client_->Logs(options_.run.ns, pod, query);
  });
}

}  // namespace muster::kubernetes
