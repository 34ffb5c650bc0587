#include "worker_sdk/net/data_client.h"

#include <fmt/format.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <map>
#include <thread>
#include <utility>

#include "worker_sdk/net/internal/lane_connection.h"

namespace muster::sdk {

namespace asio = boost::asio;
using net_internal::LaneConnection;

struct DataClient::State {
  State(Options o, Listener* l)
      : options(std::move(o)), listener(l), guard(io.get_executor()), timer(io) {}

  void OnSend(SendRequest request);
  void OnServers(std::vector<ServerEndpoint> list);
  void OnTimerAt(TimePoint when);
  void OnStop();

  Options options;
  Listener* listener;
  SystemClock clock;
  asio::io_context io{1};
  asio::executor_work_guard<asio::io_context::executor_type> guard;
  std::thread thread;
  bool stopped = false;  // of the owner

  // Of the I/O thread.
  asio::steady_timer timer;
  TimePoint timer_at = TimePoint::max();  // when the timer fires
  bool stopping = false;
  std::map<std::pair<ServerId, ServerIncarnation>, ServerEndpoint> servers;
  LaneConnection::Sharing sharing;
  std::map<LaneAddress, std::shared_ptr<LaneConnection>> connections;
};

void DataClient::State::OnSend(SendRequest request) {
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
    auto connection = std::make_shared<LaneConnection>(&io, std::move(target), &options, listener,
                                                       &sharing, &clock, closed);
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
}

void DataClient::Stop() {
  if (state_->stopped || !state_->thread.joinable()) return;
  state_->stopped = true;
  asio::post(state_->io, [state = state_.get()] { state->OnStop(); });
  state_->thread.join();
}

void DataClient::SetServers(std::vector<ServerEndpoint> servers) {
  asio::post(state_->io, [state = state_.get(), servers = std::move(servers)]() mutable {
    state->OnServers(std::move(servers));
  });
}

void DataClient::Send(std::vector<SendRequest> requests) {
  if (requests.empty()) return;
  asio::post(state_->io, [state = state_.get(), requests = std::move(requests)]() mutable {
    for (SendRequest& request : requests) state->OnSend(std::move(request));
  });
}

void DataClient::SetTimer(TimePoint when) {
  asio::post(state_->io, [state = state_.get(), when] { state->OnTimerAt(when); });
}

}  // namespace muster::sdk
