#include "admin/master_link.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/status.h"

namespace muster {
namespace {

constexpr size_t kAnswersMax = 64;
constexpr uint32_t kEventsPerPoll = 200;
constexpr uint32_t kPartitionsPerPage = 10'000;
/// Between questions that follow reports: many nodes may start or end at once.
constexpr std::chrono::milliseconds kPollPause{20};
/// The longest v1::ReportNodeRequest.text.
constexpr size_t kReportTextMax = 4'096;

/// Protobuf demands valid UTF-8, and logs may contain anything.
std::string Ascii(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) >= 0x80) c = '?';
  }
  return text;
}

v1::ReportNodeRequest ToRequest(const TellMaster& report, const std::string& run_id) {
  v1::ReportNodeRequest request;
  request.set_node(report.node);
  request.set_role(std::string(ToString(report.role)));
  request.set_start(report.start.value());
  request.set_pid(report.pid);
  request.set_what(report.exited ? "exited" : "started");
  if (report.exited) request.set_cause(std::string(ToString(report.disruption)));
  if (report.held.has_value()) {
    request.set_what("held");
    request.set_cause(std::string(ToString(*report.held)));
  } else if (report.resized.has_value()) {
    request.set_what("resized");
    request.set_cause(std::string(ToString(*report.resized)));
  }
  request.set_signal(static_cast<uint32_t>(report.exit.signal));
  request.set_exit_code(static_cast<uint32_t>(report.exit.code));
  request.set_computing_token(report.computing_token);
  request.set_minibatches_started(report.minibatches_started);
  request.set_incarnation(report.incarnation);
  // A text that is too long loses its beginning, because its end is more important.
  request.set_text(Ascii(report.text.size() > kReportTextMax
                             ? report.text.substr(report.text.size() - kReportTextMax)
                             : report.text));
  request.set_run_id(run_id);
  request.set_host(Ascii(report.host));
  return request;
}

}  // namespace

MasterView ToView(const JobStatus& status) {
  MasterView view{.state = status.state,
                  .reason = status.reason,
                  .unrestorable = status.unrestorable,
                  .done_seq = status.done_seq,
                  .end_unheard_by = status.end_unheard_by};
  for (const DatasetStatus& dataset : status.datasets) {
    view.records_done += dataset.omitted_records_done;
    for (const EpochStatus& epoch : dataset.epochs) {
      view.records_done += epoch.records_done;
      view.failed_shards += epoch.shards.failed;
    }
  }
  for (const NodeStatus& node : status.nodes) {
    view.nodes.push_back({.name = node.name,
                          .state = node.state,
                          .start = StartNumber(node.start),
                          .drain = node.drain,
                          .minibatches = node.worker ? node.worker->times.minibatches_finished : 0,
                          .wait = node.wait});
  }
  return view;
}

MasterLink::MasterLink(std::unique_ptr<AdminClient> client, std::string run_id,
                       std::chrono::milliseconds interval, const Clock* clock,
                       std::chrono::milliseconds partitions_interval)
    : client_(std::move(client)),
      run_id_(std::move(run_id)),
      interval_(interval),
      partitions_interval_(partitions_interval),
      clock_(clock),
      thread_([this] { Loop(); }) {}

MasterLink::~MasterLink() {
  HangUp();
}

void MasterLink::HangUp() {
  if (client_ == nullptr) return;
  {
    MutexLock lock(&mutex_);
    stop_ = true;
    changed_.SignalAll();
    stopped_.SignalAll();
  }
  client_->End();
  thread_.join();
  client_.reset();
}

uint64_t MasterLink::Tell(const TellMaster& report) {
  return Enqueue(
      {.kind = Order::Kind::kReport, .report = ToRequest(report, run_id_), .reason = ""});
}

void MasterLink::AskDrain() {
  Enqueue({.kind = Order::Kind::kDrain, .report = {}, .reason = ""});
}

void MasterLink::AskDrainNode(const std::string& node, std::chrono::milliseconds timeout) {
  Enqueue({.kind = Order::Kind::kDrainNode,
           .report = {},
           .reason = "",
           .node = node,
           .timeout = timeout});
}

void MasterLink::AskFail(const std::string& reason) {
  Enqueue({.kind = Order::Kind::kFail, .report = {}, .reason = reason});
}

uint64_t MasterLink::Enqueue(Order order) {
  MutexLock lock(&mutex_);
  // Callers repeat drains and cancels, so one of each kind in the queue is enough.
  if (order.kind != Order::Kind::kReport &&
      std::any_of(orders_.begin(), orders_.end(), [&](const Order& other) {
        return other.kind == order.kind && other.node == order.node;
      })) {
    return 0;
  }
  if (order.kind == Order::Kind::kReport) order.number = ++reports_;
  const uint64_t number = order.number;
  if (orders_.size() >= kReportsMax) {
    orders_.pop_front();
    ++orders_dropped_;
  }
  orders_.push_back(std::move(order));
  changed_.SignalAll();
  return number;
}

uint64_t MasterLink::reports_over() {
  MutexLock lock(&mutex_);
  return reports_over_;
}

std::vector<MasterLink::Answer> MasterLink::TakeAnswers() {
  wake_.Clear();
  MutexLock lock(&mutex_);
  return std::exchange(answers_, {});
}

std::optional<TimePoint> MasterLink::TakeRefusal() {
  MutexLock lock(&mutex_);
  return std::exchange(refused_at_, std::nullopt);
}

bool MasterLink::stopping() {
  MutexLock lock(&mutex_);
  return stop_;
}

void MasterLink::WaitForWork(std::chrono::milliseconds at_most) {
  MutexLock lock(&mutex_);
  if (!stop_ && orders_.empty()) changed_.WaitFor(&mutex_, at_most);
}

void MasterLink::WaitForEnd(std::chrono::milliseconds at_most) {
  MutexLock lock(&mutex_);
  if (!stop_) stopped_.WaitFor(&mutex_, at_most);
}

void MasterLink::Loop() {
  TimePoint next_poll = clock_->Now();
  TimePoint polled_at;
  while (!stopping()) {
    const uint64_t before = reports_over();
    const bool delivered = Deliver();
    const TimePoint now = clock_->Now();
    // Who has reported something waits for what the master makes of it.
    if (reports_over() > before) next_poll = std::min(next_poll, polled_at + kPollPause);
    if (now >= next_poll) {
      polled_at = now;
      Poll();
      // The interval runs from question to question, however long the answer took.
      next_poll = now + interval_;
    }
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(next_poll - clock_->Now());
    const std::chrono::milliseconds pause =
        std::clamp(left, std::chrono::milliseconds{0}, interval_);
    // A new order does not shorten the pause after a failed delivery.
    if (delivered) WaitForWork(pause + std::chrono::milliseconds{1});
    if (!delivered) WaitForEnd(std::min(interval_, std::chrono::milliseconds{100}));
  }
}

bool MasterLink::Deliver() {
  while (true) {
    Order order;
    uint64_t dropped = 0;
    {
      MutexLock lock(&mutex_);
      if (stop_ || orders_.empty()) return true;
      order = orders_.front();
      dropped = orders_dropped_;
    }
    const absl::Status status = Send(order);
    // Without the right token, nothing was done. The next call reads the token again.
    if (IsUnreachable(status) || absl::IsUnauthenticated(status)) return false;
    if (!status.ok()) Log(LogLevel::kWarning, "{}", Message(status));
    {
      MutexLock lock(&mutex_);
      // The front is still the item that was sent, unless the full queue dropped it meanwhile.
      if (orders_dropped_ == dropped) orders_.pop_front();
      reports_over_ = std::max(reports_over_, order.number);
    }
    if (order.kind == Order::Kind::kReport) wake_.Wake();
  }
}

absl::Status MasterLink::Send(const Order& order) {
  switch (order.kind) {
    case Order::Kind::kReport:
      return client_->ReportNode(order.report);
    case Order::Kind::kDrain:
      return client_->Drain();
    case Order::Kind::kDrainNode: {
      v1::DrainNodeRequest request;
      request.set_node(order.node);
      request.set_timeout_ms(static_cast<uint64_t>(order.timeout.count()));
      return client_->DrainNode(request).status();
    }
    case Order::Kind::kFail: {
      v1::CancelRequest request;
      request.set_reason(Ascii(order.reason.substr(0, kReportTextMax)));
      request.set_failed(true);
      return client_->Cancel(request);
    }
  }
  return absl::OkStatus();
}

void MasterLink::Poll() {
  Answer answer{.status = {}, .asked_at = clock_->Now(), .events = {}};
  absl::StatusOr<JobStatus> status = client_->GetStatus();
  if (!status.ok()) {
    if (!IsUnreachable(status.status())) NoteRefusal(status.status(), answer.asked_at);
    return;
  }
  refusal_.clear();
  answer.status = *std::move(status);
  if (answer.status.events_newest > events_seen_) {
    v1::ListEventsRequest request;
    // After a resume, the journal has the events of earlier runs, so only the newest are requested.
    request.set_after(std::max(events_seen_, answer.status.events_newest > kEventsPerPoll
                                                 ? answer.status.events_newest - kEventsPerPoll
                                                 : 0));
    request.set_limit(kEventsPerPoll);
    absl::StatusOr<MasterEvents> events = client_->ListEvents(request);
    if (events.ok()) {
      answer.events = std::move(events->events);
      // The answer may have events that are newer than the status.
      events_seen_ =
          answer.events.empty() ? answer.status.events_newest : answer.events.back().sequence;
    }
  }
  PollPartitions(&answer);
  {
    MutexLock lock(&mutex_);
    if (answers_.size() >= kAnswersMax) answers_.erase(answers_.begin());
    answers_.push_back(std::move(answer));
  }
  wake_.Wake();
}

void MasterLink::NoteRefusal(const absl::Status& status, TimePoint asked_at) {
  // The reason is logged once, and not with every poll.
  if (refusal_ != Message(status)) Log(LogLevel::kWarning, "{}", Message(status));
  refusal_ = Message(status);
  {
    MutexLock lock(&mutex_);
    refused_at_ = asked_at;
  }
  wake_.Wake();
}

void MasterLink::PollPartitions(Answer* answer) {
  if (partitions_interval_.count() == 0) return;
  if (partitions_at_.has_value() && answer->asked_at - *partitions_at_ < partitions_interval_) {
    return;
  }
  partitions_at_ = answer->asked_at;
  v1::ListPartitionsRequest request;
  request.set_limit(kPartitionsPerPage);
  while (true) {
    absl::StatusOr<PartitionList> page = client_->ListPartitions(request);
    if (!page.ok() || page->partitions.empty()) return;
    request.set_offset(request.offset() + page->partitions.size());
    const bool last = request.offset() >= page->total;
    answer->partitions.push_back(*std::move(page));
    if (last) return;
  }
}

}  // namespace muster
