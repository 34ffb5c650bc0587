#pragma once

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "collectives/internal/pending_connection.h"
#include "collectives/internal/state_session.h"
#include "collectives/internal/streams.h"
#include "collectives/listener.h"

namespace muster::collectives::internal {

/// The inside of a Listener: its thread, its sockets, and who has connected. Post and RunAndWait
/// may be called by any thread; everything else runs on its thread.
class ListenerState {
 public:
  /// Who takes the connections of one attempt.
  class AttemptHandler {
   public:
    virtual ~AttemptHandler() = default;
    /// Takes or refuses a connection whose hello has this attempt.
    virtual void OnConnection(const std::shared_ptr<PendingConnection>& connection) = 0;
  };

  explicit ListenerState(ListenerOptions options);
  /// Binds the sockets, and starts the thread.
  absl::StatusOr<std::vector<std::string>> Start();
  void Stop();

  /// After the end of the listener, tasks of other threads are dropped: nobody would run them, and
  /// a task that holds this state would keep both for ever.
  void Post(std::function<void()> task);
  /// Requires: not on the listener's thread, and before its end.
  void RunAndWait(std::function<void()> task);

  /// From now on, connections of this attempt go to `handler`, and those of earlier ones are
  /// refused.
  void Register(AttemptNumber attempt, AttemptHandler* handler);
  void Unregister(AttemptNumber attempt);
  boost::asio::io_context* io() { return &io_; }
  RingSharing* sharing() { return &sharing_; }
  /// Counts what has come from another member: chunks of sums, and answers to fetches.
  void CountMoved() { moved_.fetch_add(1, std::memory_order_relaxed); }
  uint64_t moved() const { return moved_.load(std::memory_order_relaxed); }  // by any thread
  const ListenerOptions& options() const { return options_; }
  bool is_own_thread() const { return std::this_thread::get_id() == thread_.get_id(); }

 private:
  template <typename Acceptor>
  void Accept(Acceptor* acceptor, boost::asio::steady_timer* pause, bool encrypted);
  void Admit(net::Socket socket, bool encrypted);
  void OnHello(const std::shared_ptr<PendingConnection>& connection, const Hello& hello);
  void OnMember(const std::shared_ptr<PendingConnection>& connection, AttemptNumber attempt);
  void OnLearner(const std::shared_ptr<PendingConnection>& connection);
  void CloseAll();

  const ListenerOptions options_;
  RingSharing sharing_;
  boost::asio::io_context io_{1};
  std::optional<boost::asio::executor_work_guard<boost::asio::io_context::executor_type>> work_{
      boost::asio::make_work_guard(io_)};
  boost::asio::local::stream_protocol::acceptor unix_acceptor_{io_};
  boost::asio::ip::tcp::acceptor tcp_acceptor_{io_};
  // Each acceptor has a timer of its own, because setting a timer again would end the pause of the
  // other one.
  boost::asio::steady_timer unix_pause_{io_};
  boost::asio::steady_timer tcp_pause_{io_};
  bool unix_bound_ = false;
  bool closed_ = false;
  Mutex posting_;
  bool takes_posts_ MUSTER_GUARDED_BY(posting_) = true;
  AttemptNumber newest_;  // of all that were registered
  std::map<AttemptNumber, AttemptHandler*> handlers_;
  std::set<std::shared_ptr<PendingConnection>> greeting_;
  /// For an attempt to begin.
  std::multimap<AttemptNumber, std::shared_ptr<PendingConnection>> waiting_;
  std::set<std::shared_ptr<StateSession>> sessions_;
  std::atomic<uint64_t> moved_{0};
  std::thread thread_;
};

}  // namespace muster::collectives::internal
