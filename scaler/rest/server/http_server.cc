#include "scaler/rest/server/http_server.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <ctime>
#include <future>
#include <map>
#include <optional>
#include <set>
#include <thread>
#include <unordered_map>
#include <utility>

#include "base/address.h"
#include "base/check.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/status.h"
#include "scaler/model/model_json.h"
#include "scaler/rest/server/internal/http_connection.h"

namespace muster::scaler::rest {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

/// If accepting failed (no descriptors left), the next attempt comes after this time.
constexpr std::chrono::milliseconds kAcceptPause{100};
/// There are more threads than slow calls at a time (rest/job_api.h), so other calls are answered
/// meanwhile.
constexpr size_t kPoolThreads = 8;

Response Busy(std::string detail) {
  return ToResponse({.status = 503,
                     .code = "busy",
                     .detail = std::move(detail),
                     .errors = {},
                     .retry_after_s = 1});
}

}  // namespace

struct HttpServer::State final : ConnectionHost {
  State(HttpServerOptions options, JobApi* job, const Clock* clock)
      : options(std::move(options)), job(job), clock(clock), streams(this->options.streams) {}

  void OnRequest(std::shared_ptr<HttpConnection> connection, Request request) override;
  void OnAnswer(int status) override;
  void OnClosed(HttpConnection* connection) override;
  uint64_t NextTurn() override { return ++turn; }
  std::string DateNow() override;

  void Accept();
  void Admit(tcp::socket socket);
  bool MakeRoom();
  void Answer(const std::shared_ptr<HttpConnection>& connection, const Response& response);
  void OpenStream(const std::shared_ptr<HttpConnection>& connection, const Response& response);
  void OnStreamWritten(StreamId id);
  void Tick();
  void AskJob(bool with_status);
  void WriteStreams(const StreamRound& round);
  /// Continues Finish(). When no stream is busy, it begins one more round. When that is written, it
  /// is done.
  void AdvanceFinish();
  void CountOpen();
  void CloseAll();

  const HttpServerOptions options;
  JobApi* const job;
  const Clock* const clock;
  asio::io_context io{1};
  std::optional<asio::executor_work_guard<asio::io_context::executor_type>> work{
      asio::make_work_guard(io)};
  tcp::acceptor acceptor{io};
  std::unique_ptr<TlsContext> tls;  // null: plain text
  asio::steady_timer ticker{io};
  asio::steady_timer accept_timer{io};
  std::atomic<bool> notified = false;

  // The following members belong to the server's thread.
  std::optional<RestService> service;
  std::unordered_map<HttpConnection*, std::shared_ptr<HttpConnection>> connections;
  EventStreams streams;
  std::map<StreamId, std::shared_ptr<HttpConnection>> stream_connections;
  std::map<HttpConnection*, StreamId> stream_ids;
  RestStats stats;
  size_t calls = 0;
  uint64_t turn = 0;
  bool asking = false;     // a round is in progress
  bool ask_again = false;  // another round is wanted after it
  bool stopping = false;
  std::shared_ptr<std::promise<void>> finishing;
  bool last_round = false;  // the last round has begun

  // The pool is the last member, because its threads use the others.
  std::optional<asio::thread_pool> pool;
  std::thread thread;
};

HttpServer::HttpServer(HttpServerOptions options, JobApi* job, const Clock* clock)
    : state_(std::make_unique<State>(std::move(options), job, clock)) {}

HttpServer::~HttpServer() {
  Stop();
}

absl::StatusOr<uint16_t> HttpServer::Listen() {
  if (state_->options.tls.has_value()) {
    MUSTER_ASSIGN_OR_RETURN(state_->tls, TlsContext::Make(*state_->options.tls, state_->clock));
  }
  const HttpServerOptions& options = state_->options;
  MUSTER_ASSIGN_OR_RETURN(const std::vector<std::string> numbers, ResolveHost(options.host));
  error_code error;
  const tcp::endpoint place(asio::ip::make_address(numbers.front(), error), options.port);
  tcp::acceptor& acceptor = state_->acceptor;
  if (!error) acceptor.open(place.protocol(), error);
  // Connections of a former process that are still closing do not block the port.
  if (!error) acceptor.set_option(asio::socket_base::reuse_address(true), error);
  if (!error) acceptor.bind(place, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) {
    return absl::UnavailableError(fmt::format(
        "cannot listen on {}: {}", JoinHostPort(options.host, options.port), error.message()));
  }
  const uint16_t port = acceptor.local_endpoint().port();
  std::vector<std::string> hosts = options.names;
  if (!IsLoopbackHost(options.host)) hosts.push_back(options.host);
  state_->service.emplace(port, state_->options.read_token, state_->options.rest,
                          state_->options.files, state_->clock->Now(), hosts,
                          state_->tls != nullptr);
  return port;
}

void HttpServer::Start() {
  MUSTER_CHECK(state_->service.has_value() && !state_->thread.joinable());
  state_->pool.emplace(kPoolThreads);
  state_->Accept();
  state_->Tick();
  state_->thread = std::thread([state = state_.get()] {
    pthread_setname_np(pthread_self(), "rest");
    state->io.run();
  });
}

void HttpServer::Stop() {
  State* state = state_.get();
  if (!state->thread.joinable()) return state->CloseAll();
  asio::post(state->io, [state] { state->CloseAll(); });
  // Calls that have not begun are dropped. Stop() waits for those that the job is answering.
  state->pool->stop();
  state->pool->join();
  asio::post(state->io, [state] { state->work.reset(); });
  state->thread.join();
}

void HttpServer::Finish(std::chrono::milliseconds at_most) {
  if (state_->thread.joinable()) {
    const auto finished = std::make_shared<std::promise<void>>();
    asio::post(state_->io, [state = state_.get(), finished] {
      state->finishing = finished;
      state->AdvanceFinish();
    });
    finished->get_future().wait_for(at_most);
  }
  Stop();
}

void HttpServer::NotifyEvents() {
  if (state_->notified.exchange(true)) return;
  asio::post(state_->io, [state = state_.get()] {
    state->notified = false;
    state->AskJob(/*with_status=*/false);
  });
}

void HttpServer::State::CloseAll() {
  stopping = true;
  error_code ignored;
  acceptor.close(ignored);
  ticker.cancel();
  accept_timer.cancel();
  // This iterates over a copy, because Close() removes the connection from the map.
  for (auto open = connections; auto& [unused, connection] : open) connection->Close();
}

void HttpServer::State::CountOpen() {
  stats.connections = connections.size();
  stats.streams = streams.size();
}

std::string HttpServer::State::DateNow() {
  const auto now = std::chrono::duration_cast<std::chrono::seconds>(clock->Wall()).count();
  return fmt::format("{:%a, %d %b %Y %H:%M:%S} GMT", fmt::gmtime(static_cast<std::time_t>(now)));
}

void HttpServer::State::Accept() {
  acceptor.async_accept([this](const error_code& error, tcp::socket socket) {
    if (!acceptor.is_open()) return;
    if (!error) {
      Admit(std::move(socket));
      return Accept();
    }
    Log(LogLevel::kWarning, "rest: cannot accept a connection: {}", error.message());
    accept_timer.expires_after(kAcceptPause);
    accept_timer.async_wait([this](const error_code& /*due*/) {
      if (acceptor.is_open()) Accept();
    });
  });
}

bool HttpServer::State::MakeRoom() {
  if (connections.size() < options.http.connections_max) return true;
  std::shared_ptr<HttpConnection> oldest;
  for (const auto& [unused, connection] : connections) {
    if (!connection->waiting()) continue;
    if (!oldest || connection->waiting_since() < oldest->waiting_since()) oldest = connection;
  }
  if (!oldest) return false;
  oldest->Close();
  return true;
}

void HttpServer::State::Admit(tcp::socket socket) {
  error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  const bool room = MakeRoom();
  // One connection beyond the limit is told that the server is full. While it lingers, further ones
  // are just closed.
  if (!room && connections.size() > options.http.connections_max) {
    ++stats.connections_refused;
    return CountOpen();
  }
  auto connection =
      std::make_shared<HttpConnection>(std::move(socket), tls == nullptr ? nullptr : tls->Get(),
                                       service->NewConnection(clock->Now()), &options.http, this);
  connections.emplace(connection.get(), connection);
  if (room) {
    connection->Start();
  } else {
    ++stats.connections_refused;
    connection->TurnAway(Busy(
        fmt::format("all {} connections are in use; close some", options.http.connections_max)));
  }
  CountOpen();
}

void HttpServer::State::OnAnswer(int status) {
  ++stats.answers.at(static_cast<size_t>(std::clamp(status / 100, 0, 5)));
  CountOpen();
}

void HttpServer::State::OnClosed(HttpConnection* connection) {
  if (const auto stream = stream_ids.find(connection); stream != stream_ids.end()) {
    streams.Close(stream->second);
    stream_connections.erase(stream->second);
    stream_ids.erase(stream);
  }
  connections.erase(connection);
  CountOpen();
  AdvanceFinish();
}

void HttpServer::State::Answer(const std::shared_ptr<HttpConnection>& connection,
                               const Response& response) {
  if (!connection->open()) return;
  if (response.stream) return OpenStream(connection, response);
  OnAnswer(response.status);
  connection->Respond(response);
}

void HttpServer::State::OnRequest(std::shared_ptr<HttpConnection> connection, Request request) {
  auto admitted = service->Admit(request, connection->limiter(), clock->Now());
  if (const auto* response = std::get_if<Response>(&admitted)) return Answer(connection, *response);
  if (calls >= options.http.calls_max) {
    return Answer(connection, Busy(fmt::format("{} requests are waiting for the job", calls)));
  }
  ++calls;
  asio::post(*pool, [this, connection = std::move(connection),
                     call = std::get<Call>(std::move(admitted)), stats = stats]() mutable {
    Backend backend{.job = *job, .stats = stats};
    Response response = RestService::Run(call, backend);
    asio::post(io, [this, connection = std::move(connection), response = std::move(response)] {
      --calls;
      Answer(connection, response);
    });
  });
}

void HttpServer::State::OpenStream(const std::shared_ptr<HttpConnection>& connection,
                                   const Response& response) {
  auto opened = streams.Open(*response.stream, clock->Now());
  if (!opened) {
    return Answer(connection, Busy(fmt::format("{} streams are open, the most there may be; close "
                                               "one",
                                               streams.size())));
  }
  OnAnswer(response.status);
  const StreamId id = opened->id;
  stream_connections[id] = connection;
  stream_ids[connection.get()] = id;
  connection->Stream(response, std::move(opened->text), [this, id] { OnStreamWritten(id); });
  CountOpen();
}

void HttpServer::State::OnStreamWritten(StreamId id) {
  if (streams.Written(id, clock->Now())) AskJob(/*with_status=*/false);
  AdvanceFinish();
}

void HttpServer::State::AdvanceFinish() {
  if (finishing == nullptr || asking || streams.Writing()) return;
  if (!std::exchange(last_round, true) && streams.size() > 0) return AskJob(/*with_status=*/true);
  std::exchange(finishing, nullptr)->set_value();
}

void HttpServer::State::Tick() {
  ticker.expires_after(options.tick);
  ticker.async_wait([this](const error_code& error) {
    if (error || stopping) return;
    for (const StreamId id : streams.Stalled(clock->Now())) {
      ++stats.streams_dropped;
      const auto connection = stream_connections.at(id);  // Close() removes it from the map
      connection->Close();
    }
    AskJob(/*with_status=*/true);
    Tick();
  });
}

void HttpServer::State::AskJob(bool with_status) {
  if (stopping || streams.size() == 0) return;
  if (asking) {
    // The extra round has no status. The next tick sends it.
    ask_again = true;
    return;
  }
  asking = true;
  const std::set<uint64_t> positions = streams.Positions();
  const bool status = with_status && streams.WantsStatus();
  asio::post(*pool, [this, positions, status] {
    StreamRound round;
    for (const uint64_t position : positions) {
      auto events = job->Events(position, options.streams.events_per_write);
      if (events.ok()) round.events[position] = std::move(events->events);
    }
    if (status) {
      const auto picture = job->Look();
      if (picture.ok()) {
        round.status = Dump(ToJson(Status{(*picture)->job, (*picture)->nodes.nodes}));
      }
    }
    asio::post(io, [this, round = std::move(round)] { WriteStreams(round); });
  });
}

void HttpServer::State::WriteStreams(const StreamRound& round) {
  asking = false;
  if (stopping) return;
  for (auto& [id, text] : streams.Take(round, clock->Now())) {
    // It is a copy, because a write that fails at once removes the connection from the map.
    const auto connection = stream_connections.at(id);
    connection->Write(std::move(text));
  }
  if (std::exchange(ask_again, false)) AskJob(/*with_status=*/false);
  AdvanceFinish();
}

}  // namespace muster::scaler::rest
