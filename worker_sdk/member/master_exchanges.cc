#include "worker_sdk/member/master_exchanges.h"

#include <algorithm>
#include <utility>

#include "base/failpoint.h"
#include "base/status.h"
#include "worker_sdk/control/control_client.h"
#include "worker_sdk/readers/data_root.h"

namespace muster::internal {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kCallTimeoutMin{2'000};
constexpr milliseconds kLookAgain{250};
constexpr milliseconds kFarewellTimeout{1'000};
constexpr uint32_t kCallsMax = 2;

}  // namespace

MasterExchanges::MasterExchanges(Options options)
    : options_(std::move(options)),
      desk_(options_.desk),
      client_(options_.loop, options_.master_address, options_.job, options_.tls),
      timer_(*options_.loop) {}

std::optional<GroupExchangeRequest> MasterExchanges::NextCall(DeskContents& desk, TimePoint now) {
  sdk::MemberCore& core = *desk.core;
  if (options_.leaving()) core.Leave();
  const bool computes = core.computes();
  const bool may = desk.call_times.MayCall(now) && desk.calls < kCallsMax;
  const bool only_news =
      desk.calls > 0 || (desk.call_times.IsQuiet(computes, now) && core.NextCallIsVote());
  if (may && (!only_news || core.request_changed())) {
    ++desk.calls;
    return core.Request();
  }
  const TimePoint next = desk.call_times.Next(computes);
  desk.looks_at = next > now && desk.calls == 0 ? next : now + kLookAgain;
  if (desk.core_again.has_value()) desk.looks_at = std::min(desk.looks_at, *desk.core_again);
  return std::nullopt;
}

void MasterExchanges::Look() {
  while (!ended_) {
    const TimePoint now = desk_->Now();
    milliseconds timeout{0};
    std::optional<TimePoint> again;
    std::optional<GroupExchangeRequest> request = desk_->Look([&](DeskContents& desk) {
      std::optional<GroupExchangeRequest> next;
      if (desk.over()) return next;
      next = NextCall(desk, now);
      timeout = std::max(kCallTimeoutMin, 4 * desk.core->view().heartbeat_interval);
      again = desk.looks_at;
      return next;
    });
    if (!request.has_value()) return again.has_value() ? LookAgain(*again) : void();
    const Progress progress = options_.progress();
    request->moved = progress.moved;
    request->written = progress.written;
    const bool votes = request->sum.has_value();
    if (votes) MUSTER_FAILPOINT("group.before-vote");
    client_.Exchange(*request, timeout, [this, votes](auto reply) {
      if (votes) MUSTER_FAILPOINT("group.after-vote");
      OnExchanged(std::move(reply));
    });
  }
}

void MasterExchanges::LookAgain(TimePoint at) {
  // A timer that comes too early does no harm, and to set it anew costs more.
  if (timer_at_.has_value() && *timer_at_ <= at) return;
  timer_at_ = at;
  timer_.expires_after(at - desk_->Now());
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    timer_at_.reset();
    // The core may have something to do again.
    desk_->Tell([](DeskContents&) {});
    Look();
  });
}

void MasterExchanges::OnExchanged(absl::StatusOr<GroupExchangeReply> reply) {
  const absl::Status away = options_.judge_absence(reply.status());
  const std::string& root = options_.data_root;
  if (reply.ok() && !root.empty()) {
    if (reply->work.has_value()) sdk::MoveHere(root, &reply->work->work);
    if (reply->ahead.has_value()) sdk::MoveHere(root, &*reply->ahead);
  }
  desk_->Tell([&](DeskContents& desk) {
    --desk.calls;
    if (reply.ok()) {
      desk.core->OnReply(*reply);
      const GroupExchangeReply& view = desk.core->view();
      desk.call_times.OnAnswer(view.step, view.heartbeat_interval, desk_->Now());
      desk.trouble.clear();
      desk.kept.Prune(view.lineage, desk.core->SumsKeptAfter());
    } else if (sdk::IsPermanent(reply.status())) {
      desk.Fail(Annotate(reply.status(), "the master refuses this member"));
    } else if (!away.ok()) {
      desk.Fail(away);
    } else if (!absl::IsAlreadyExists(reply.status())) {
      desk.trouble = Message(reply.status());
      desk.call_times.OnError(desk_->Now());
    }
  });
  Look();
}

void MasterExchanges::SayFarewell(std::function<void()> done) {
  ended_ = true;
  timer_.cancel();
  const std::optional<GroupExchangeRequest> farewell = desk_->Look([](DeskContents& desk) {
    return desk.core.has_value() ? desk.core->Farewell() : std::nullopt;
  });
  if (!farewell.has_value()) return done();
  client_.Exchange(*farewell, kFarewellTimeout, [done = std::move(done)](const auto&) { done(); });
}

}  // namespace muster::internal
