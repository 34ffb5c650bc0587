#include "collectives/internal/listener_state.h"

#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include <boost/asio/post.hpp>
#include <future>
#include <utility>

#include "base/check.h"
#include "base/status.h"
#include "net/endpoints.h"
#include "proto/messages/job_identity.h"

namespace muster::collectives::internal {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

/// The pause after accept() failed (no descriptors left).
constexpr std::chrono::milliseconds kAcceptPause{100};

}  // namespace

ListenerState::ListenerState(ListenerOptions options)
    : options_(std::move(options)), sharing_(options_.ring_bytes_max) {}

absl::StatusOr<std::vector<std::string>> ListenerState::Start() {
  std::vector<std::string> addresses;
  if (!options_.unix_path.empty() && options_.unix_path.size() <= net::kUnixPathMax) {
    unix_bound_ = true;
    MUSTER_ASSIGN_OR_RETURN(std::string address,
                            net::ListenUnix(options_.unix_path, &unix_acceptor_));
    addresses.push_back(std::move(address));
    Accept(&unix_acceptor_, &unix_pause_, false);
  }
  if (!options_.host.empty()) {
    MUSTER_ASSIGN_OR_RETURN(
        std::string address,
        net::ListenTcp({options_.host, options_.advertise, options_.ports}, &tcp_acceptor_));
    addresses.push_back(std::move(address));
    Accept(&tcp_acceptor_, &tcp_pause_, static_cast<bool>(options_.tls_server));
  }
  thread_ = std::thread([this] {
    pthread_setname_np(pthread_self(), "group");
    io_.run();
  });
  return addresses;
}

void ListenerState::Stop() {
  if (thread_.joinable()) {
    Post([this] { CloseAll(); });
    thread_.join();
  }
  if (std::exchange(unix_bound_, false)) ::unlink(options_.unix_path.c_str());
}

void ListenerState::CloseAll() {
  closed_ = true;
  error_code ignored;
  unix_acceptor_.close(ignored);
  tcp_acceptor_.close(ignored);
  unix_pause_.cancel();
  tcp_pause_.cancel();
  MUSTER_CHECK_MSG(handlers_.empty(), "a reducer outlived its listener");
  for (const auto& connection : std::exchange(greeting_, {})) connection->Close();
  for (const auto& [unused, connection] : std::exchange(waiting_, {})) connection->Close();
  for (const auto& session : std::exchange(sessions_, {})) session->Close();
  {
    // What was posted before still runs, because run() returns only when nothing is left.
    MutexLock lock(&posting_);
    takes_posts_ = false;
  }
  work_.reset();
}

void ListenerState::Post(std::function<void()> task) {
  MutexLock lock(&posting_);
  if (takes_posts_ || is_own_thread()) asio::post(io_, std::move(task));
}

void ListenerState::RunAndWait(std::function<void()> task) {
  MUSTER_CHECK_MSG(!is_own_thread(), "called by a callback, which would wait for itself");
  // The task owns the promise, too, because it may still use it when this thread has its answer.
  auto done = std::make_shared<std::promise<void>>();
  std::future<void> is_done = done->get_future();
  Post([done, task = std::move(task)] {
    task();
    done->set_value();
  });
  is_done.wait();
}

template <typename Acceptor>
void ListenerState::Accept(Acceptor* acceptor, asio::steady_timer* pause, bool encrypted) {
  acceptor->async_accept([this, acceptor, pause, encrypted](const error_code& error, auto socket) {
    if (closed_) return;
    if (!error) {
      Admit(std::move(socket), encrypted);
      return Accept(acceptor, pause, encrypted);
    }
    pause->expires_after(kAcceptPause);
    pause->async_wait([this, acceptor, pause, encrypted](const error_code& /*due*/) {
      if (!closed_) Accept(acceptor, pause, encrypted);
    });
  });
}

void ListenerState::Admit(net::Socket socket, bool encrypted) {
  // A connection above the limit is dropped. Its owner tries again.
  if (greeting_.size() + waiting_.size() + sessions_.size() >= options_.strangers_max) return;
  auto connection = std::make_shared<PendingConnection>(
      std::move(socket), encrypted ? options_.tls_server() : nullptr, &sharing_,
      [this](const std::shared_ptr<PendingConnection>& greeted, const Hello* hello) {
        greeting_.erase(greeted);
        if (hello != nullptr && !closed_) OnHello(greeted, *hello);
      });
  greeting_.insert(connection);
  connection->Start(options_.hello_timeout);
}

void ListenerState::OnHello(const std::shared_ptr<PendingConnection>& connection,
                            const Hello& hello) {
  const absl::Status job =
      CheckJobIdentity({.we = options_.worker, .they = hello.worker}, {.id = options_.job_id},
                       {.id = hello.job_id}, UnnamedJob::kRefuse);
  if (!job.ok()) return connection->Refuse(Message(job), true);
  if (hello.to_worker != options_.worker || hello.to_incarnation != options_.incarnation) {
    return connection->Refuse(
        fmt::format("this is {} of incarnation {}, not {} of incarnation {}", options_.worker,
                    options_.incarnation, hello.to_worker, hello.to_incarnation),
        hello.to_worker != options_.worker);
  }
  return hello.attempt == AttemptNumber() ? OnLearner(connection)
                                          : OnMember(connection, hello.attempt);
}

void ListenerState::OnMember(const std::shared_ptr<PendingConnection>& connection,
                             AttemptNumber attempt) {
  if (const auto handler = handlers_.find(attempt); handler != handlers_.end()) {
    return handler->second->OnConnection(connection);
  }
  if (attempt > newest_) {
    // An earlier connection of the same process has given up.
    std::erase_if(waiting_, [&](const auto& one) {
      const bool older =
          one.first == attempt && one.second->hello().worker == connection->hello().worker;
      if (older) one.second->Close();
      return older;
    });
    waiting_.emplace(attempt, connection);
    return;
  }
  connection->Refuse(fmt::format("{} has left attempt {}; its newest one is {}", options_.worker,
                                 attempt.value(), newest_.value()),
                     false);
}

void ListenerState::OnLearner(const std::shared_ptr<PendingConnection>& connection) {
  if (options_.provider == nullptr) {
    return connection->Refuse(fmt::format("{} gives no state to learners", options_.worker), false);
  }
  auto session = std::make_shared<StateSession>(
      options_.provider,
      [this](const std::shared_ptr<StateSession>& ended) { sessions_.erase(ended); });
  sessions_.insert(session);
  session->Start(connection.get());
}

void ListenerState::Register(AttemptNumber attempt, AttemptHandler* handler) {
  MUSTER_CHECK_MSG(attempt > newest_, "attempts only grow");
  newest_ = attempt;
  handlers_.emplace(attempt, handler);
  // Connections of skipped attempts are refused, and those of later ones still wait.
  std::vector<std::shared_ptr<PendingConnection>> come;
  const auto end = waiting_.upper_bound(attempt);
  for (auto it = waiting_.begin(); it != end; it = waiting_.erase(it)) come.push_back(it->second);
  for (const std::shared_ptr<PendingConnection>& connection : come)
    OnMember(connection, connection->hello().attempt);
}

void ListenerState::Unregister(AttemptNumber attempt) {
  handlers_.erase(attempt);
}

}  // namespace muster::collectives::internal
