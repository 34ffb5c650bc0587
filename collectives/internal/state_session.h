#pragma once

#include <functional>
#include <memory>
#include <string>

#include "collectives/internal/link.h"
#include "collectives/internal/pending_connection.h"
#include "collectives/state_provider.h"

namespace muster::collectives::internal {

/// A learner's connection, at the member that gives. One request at a time is read and answered, so
/// a learner that does not read is not read, either. Belongs to the listener's thread.
class StateSession : public std::enable_shared_from_this<StateSession>, public Link::Handler {
 public:
  using Ended = std::function<void(const std::shared_ptr<StateSession>&)>;

  StateSession(StateProvider* provider, Ended ended);
  /// Accepts the learner.
  void Start(PendingConnection* learner);
  void Close();

 private:
  absl::StatusOr<std::optional<std::span<std::byte>>> OnHeader(const FrameHeader& header) override;
  absl::Status OnPayload(const FrameHeader& header) override;
  void OnEnded(std::string_view why) override;
  void Answer(const FetchRequest& request);
  void SendError(const absl::Status& why);
  void OnSent();

  StateProvider* const provider_;
  Ended ended_;
  std::shared_ptr<Link> link_;
  std::string message_;
  bool answering_ = false;
  std::shared_ptr<const void> lent_;  // while it is sent
};

}  // namespace muster::collectives::internal
