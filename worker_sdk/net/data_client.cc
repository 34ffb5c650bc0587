#include "worker_sdk/net/data_client.h"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <map>
#include <thread>
#include <utility>

#include "base/mutex.h"
#include "worker_sdk/core/kept_memory.h"
#include "worker_sdk/net/internal/lane_connection.h"
#include "worker_sdk/net/internal/turns.h"

namespace muster::sdk {

namespace asio = boost::asio;
using net_internal::LaneConnection;
using net_internal::Turns;
using net_internal::TurnsExecutor;

namespace {

/// The caller's thread sends up to this many bytes by itself. The I/O thread sends more.
constexpr uint64_t kOwnBytesMax = 256u << 10;
/// The longest spin, in budgets, however much arrives meanwhile.
constexpr int kBudgetsMax = 10;

uint64_t BytesOf(const SendRequests& requests) {
  uint64_t bytes = 0;
  for (const SendRequest& request : requests) {
    bytes += request.keys * sizeof(uint64_t);
    if (request.push.has_value()) bytes += request.floats * sizeof(float);
  }
  return bytes;
}

}  // namespace

struct DataClient::State {
  State(Options o, Listener* l)
      : options(std::move(o)),
        listener(l),
        guard(io.get_executor()),
        turns(io.get_executor()),
        executor(TurnsExecutor(io.get_executor(), &turns)),
        timer(executor) {}

  /// Sends the requests in `to_send`.
  void OnSend();
  void SendOne(SendRequest request);
  void OnServers(std::vector<ServerEndpoint> list);
  void OnTimerAt(TimePoint when);
  void OnStop();

  Options options;
  Listener* listener;
  SystemClock clock;
  asio::io_context io{1};
  asio::executor_work_guard<asio::io_context::executor_type> guard;
  std::thread thread;
  bool stopped = false;  // belongs to the owner
  Mutex mutex;
  SendRequests to_send MUSTER_GUARDED_BY(mutex);
  std::atomic<uint64_t> posted{0};  // posted sends that the I/O thread has not done yet
  std::atomic<bool> spinning{false};

  // The following members belong to the task that has the turn.
  Turns turns;
  asio::any_io_executor executor;
  asio::steady_timer timer;
  TimePoint timer_at = TimePoint::max();  // when the timer fires
  bool stopping = false;
  std::map<std::pair<ServerId, ServerIncarnation>, ServerEndpoint> servers;
  LaneConnection::Sharing sharing;
  std::map<LaneAddress, std::shared_ptr<LaneConnection>> connections;
  std::vector<std::shared_ptr<LaneConnection>> polled;  // polled by the spinning thread
};

/// A handler that lets the I/O thread send.
struct DataClient::PostedSend {
  using allocator_type = PoolAllocator<std::byte>;
  allocator_type get_allocator() const { return {}; }
  void operator()() const {
    state->turns.RunAtHome([state = state] {
      state->OnSend();
      --state->posted;
    });
  }
  State* state;
};

void DataClient::State::OnSend() {
  SendRequests requests;
  {
    MutexLock lock(&mutex);
    requests.swap(to_send);
  }
  for (SendRequest& request : requests) SendOne(std::move(request));
}

void DataClient::State::SendOne(SendRequest request) {
  if (stopping) return;
  auto it = connections.find(request.lane);
  if (it == connections.end()) {
    auto server = servers.find({request.lane.server, request.lane.incarnation});
    if (server == servers.end() || request.lane.lane >= server->second.lanes.size()) {
      listener->OnUnanswered(
          request.id, fmt::format("ps-{}: not in the map any more", request.lane.server.value()));
      return;
    }
    LaneConnection::Target target{request.lane,
                                  fmt::format("{}.{}", server->second.name, request.lane.lane),
                                  server->second.lanes[request.lane.lane]};
    auto closed = [this, lane = request.lane](LaneConnection* connection) {
      auto known = connections.find(lane);
      if (known != connections.end() && known->second.get() == connection) {
        connections.erase(known);
      }
    };
    auto connection = std::make_shared<LaneConnection>(executor, std::move(target), &options,
                                                       listener, &sharing, &clock, closed);
    connections[request.lane] = connection;
    connection->Send(std::move(request));
    connection->Start();
    return;
  }
  std::shared_ptr<LaneConnection> connection = it->second;
  connection->Send(std::move(request));
}

void DataClient::State::OnServers(std::vector<ServerEndpoint> list) {
  servers.clear();
  for (ServerEndpoint& server : list) {
    auto key = std::pair(server.id, server.incarnation);
    servers[key] = std::move(server);
  }
  std::vector<std::shared_ptr<LaneConnection>> gone;
  for (const auto& [lane, connection] : connections) {
    if (!servers.contains({lane.server, lane.incarnation})) gone.push_back(connection);
  }
  for (const auto& connection : gone) connection->Close("it has been replaced");
}

void DataClient::State::OnTimerAt(TimePoint when) {
  if (stopping || when >= timer_at) return;
  timer_at = when;
  timer.expires_at(std::chrono::steady_clock::time_point(when.time_since_epoch()));
  timer.async_wait([this](boost::system::error_code error) {
    if (error || stopping) return;
    timer_at = TimePoint::max();
    listener->OnTimer();
  });
}

void DataClient::State::OnStop() {
  stopping = true;
  timer.cancel();
  auto all = connections;
  for (auto& [lane, connection] : all) connection->Close("the session ends");
  guard.reset();
}

DataClient::DataClient(Options options, Listener* listener)
    : state_(std::make_unique<State>(std::move(options), listener)) {}

DataClient::~DataClient() {
  Stop();
}

void DataClient::Start() {
  state_->thread = std::thread([state = state_.get()] { state->io.run(); });
  pthread_setname_np(state_->thread.native_handle(), "muster-data");
}

void DataClient::Stop() {
  if (state_->stopped || !state_->thread.joinable()) return;
  state_->stopped = true;
  state_->turns.Run([state = state_.get()] { state->OnStop(); });
  state_->thread.join();
}

void DataClient::SetServers(std::vector<ServerEndpoint> servers) {
  state_->turns.Run([state = state_.get(), servers = std::move(servers)]() mutable {
    state->OnServers(std::move(servers));
  });
}

void DataClient::Send(SendRequests requests) {
  if (requests.empty()) return;
  State* const state = state_.get();
  const bool small = BytesOf(requests) <= kOwnBytesMax;
  {
    // The requests wait here, so the tasks carry nothing and need no memory.
    MutexLock lock(&state->mutex);
    for (SendRequest& request : requests) state->to_send.push_back(std::move(request));
  }
  // A request must not overtake one that was posted.
  if (small && state->posted.load() == 0) return state->turns.Run([state] { state->OnSend(); });
  ++state->posted;
  asio::post(state->io, PostedSend{state});
}

void DataClient::Spin(absl::FunctionRef<bool()> done, std::chrono::nanoseconds budget) {
  State* const state = state_.get();
  if (budget.count() == 0 || state->spinning.exchange(true)) return;
  bool polls = false;
  state->turns.TryRun([&] {
    for (const auto& [lane, connection] : state->connections) {
      if (connection->BeginPolling()) state->polled.push_back(connection);
    }
    polls = !state->polled.empty();
  });
  if (!polls) {
    state->spinning = false;
    return;
  }
  const TimePoint began = state->clock.Now();
  for (TimePoint newest = began; !done();) {
    bool came = false;
    state->turns.TryRun([&] {
      for (const auto& connection : state->polled) came |= connection->Poll();
    });
    const TimePoint now = state->clock.Now();
    // Other answers may arrive for ever, so the time is limited.
    if (now - began >= kBudgetsMax * budget) break;
    if (came) {
      newest = now;
    } else if (now - newest >= budget) {
      break;
    } else {
      std::this_thread::yield();  // the server may need this processor for the answer
    }
  }
  state->turns.Run([state] {
    for (const auto& connection : std::exchange(state->polled, {})) connection->EndPolling();
    state->spinning = false;
  });
}

void DataClient::SetTimer(TimePoint when) {
  state_->turns.Run([state = state_.get(), when] { state->OnTimerAt(when); });
}

}  // namespace muster::sdk
