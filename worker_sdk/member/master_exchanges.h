#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "worker_sdk/control/group_client.h"
#include "worker_sdk/member/member_desk.h"

namespace muster::internal {

/// A member's exchanges with the master: at most two at a time, so that one with news does not wait
/// for the one that the master keeps. Belongs to the loop's thread.
class MasterExchanges {
 public:
  /// Bytes and pieces that have moved, for GroupExchangeRequest.
  struct Progress {
    uint64_t moved = 0;
    uint64_t written = 0;
  };
  struct Options {
    boost::asio::io_context* loop = nullptr;  // outlives it, like the desk
    MemberDesk* desk = nullptr;
    std::string master_address;
    JobIdentity job;
    net::TlsContextSource tls;
    std::string data_root;  // see SessionOptions
    std::function<Progress()> progress;
    std::function<bool()> leaving;  // the worker is to leave
    /// Of each exchange, how it ended. An error: the master has been away for too long.
    std::function<absl::Status(const absl::Status&)> judge_absence;
  };
  explicit MasterExchanges(Options options);
  /// Begins a call, if one is due. Otherwise it looks again when one may be.
  void Look();
  /// The last call; `done`: it is answered, or need not be made.
  void SayFarewell(std::function<void()> done);

 private:
  /// The next call, if it is due.
  std::optional<GroupExchangeRequest> NextCall(DeskContents& desk, TimePoint now);
  void OnExchanged(absl::StatusOr<GroupExchangeReply> reply);
  void LookAgain(TimePoint at);

  const Options options_;
  MemberDesk* const desk_;
  sdk::GroupClient client_;
  boost::asio::steady_timer timer_;
  std::optional<TimePoint> timer_at_;
  bool ended_ = false;
};

}  // namespace muster::internal
