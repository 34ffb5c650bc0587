#include "worker_sdk/control/grpc_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <list>
#include <set>

#include "base/address.h"
#include "base/status.h"
#include "net/connector.h"
#include "worker_sdk/control/grpc_call.h"
#include "worker_sdk/control/http2_connection.h"

namespace muster::sdk {

namespace asio = boost::asio;

/// Handlers keep it alive. After Stop, they do nothing.
struct GrpcClient::State : std::enable_shared_from_this<State> {
  struct Call {
    explicit Call(asio::io_context* loop) : timer(*loop) {}
    std::string method;
    std::string request;
    std::chrono::steady_clock::time_point deadline;
    asio::steady_timer timer;
    Done done;          // null if the call was answered
    bool kept = false;  // its connection had been used before
    bool repeated = false;
    std::weak_ptr<Http2Connection> connection;
  };
  using CallPtr = std::shared_ptr<Call>;

  State(asio::io_context* io, std::string target, net::TlsContextSource source)
      : loop(io), address(std::move(target)), tls(std::move(source)) {}

  void Begin(const CallPtr& call);
  void Submit(const CallPtr& call);
  void Connect(std::chrono::steady_clock::time_point deadline);
  void OnConnected(absl::StatusOr<net::Connector::Made> made);
  void OnDeadline(const CallPtr& call);
  void OnEnd(const CallPtr& call, const Http2Answer& answer);
  void Answer(const CallPtr& call, absl::StatusOr<std::string> result);
  void Stop();

  asio::io_context* const loop;
  const std::string address;
  const net::TlsContextSource tls;
  std::vector<std::pair<std::string, std::string>> metadata;
  std::set<CallPtr> calls;
  std::list<CallPtr> waiting;                   // for a connection
  std::shared_ptr<net::Connector> connector;    // null unless it connects now
  std::shared_ptr<Http2Connection> connection;  // for new calls; null: none
};

void GrpcClient::State::Begin(const CallPtr& call) {
  if (connection != nullptr && connection->MayCall()) return Submit(call);
  connection = nullptr;  // calls on the old connection continue
  waiting.push_back(call);
  // Connecting may fail at once, and no call may be answered within Call. So it is posted.
  asio::post(*loop, [self = weak_from_this(), deadline = call->deadline] {
    if (const auto state = self.lock()) state->Connect(deadline);
  });
}

void GrpcClient::State::Connect(std::chrono::steady_clock::time_point deadline) {
  if (waiting.empty() || connector != nullptr) return;
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
      deadline - std::chrono::steady_clock::now());
  connector = std::make_shared<net::Connector>(
      loop->get_executor(),
      net::Connector::Options{.addresses = {address},
                              .timeout = std::max(left, std::chrono::milliseconds(1)),
                              .tls = tls,
                              .tls_options = {.protocol = "h2"}},
      [self = weak_from_this()](auto made) {
        if (const auto state = self.lock()) state->OnConnected(std::move(made));
      });
  connector->Start();
}

void GrpcClient::State::OnConnected(absl::StatusOr<net::Connector::Made> made) {
  const std::shared_ptr<net::Connector> made_by = std::exchange(connector, nullptr);
  const std::list<CallPtr> all = std::exchange(waiting, {});
  if (made.ok()) connection = Http2Connection::Start(std::move(made->stream));
  for (const CallPtr& call : all) {
    // If a name has no address, the call fails and may be repeated, because the name may get one
    // later.
    made.ok() ? Submit(call) : Answer(call, Unreachable(address, made_by->why()));
  }
}

void GrpcClient::State::Submit(const CallPtr& call) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
      call->deadline - std::chrono::steady_clock::now());
  Http2Fields fields = {
      {":method", "POST"},
      {":scheme", tls ? "https" : "http"},
      {":path", call->method},
      {":authority", address},
      {"te", "trailers"},
      {"content-type", "application/grpc"},
      {"grpc-timeout", fmt::format("{}m", std::clamp<int64_t>(left.count(), 1, 99'999'999))},
      {"user-agent", "muster-sdk"}};
  fields.insert(fields.end(), metadata.begin(), metadata.end());
  call->kept = connection->used();
  call->connection = connection;
  connection->Call(fields, FramedMessage(call->request), kResponseBytesMax,
                   [self = weak_from_this(), call](const Http2Answer& answer) {
                     if (const auto state = self.lock()) state->OnEnd(call, answer);
                   });
}

void GrpcClient::State::OnEnd(const CallPtr& call, const Http2Answer& answer) {
  if (!call->done) return;
  absl::StatusOr<std::string> result = GrpcResult(address, call->method, answer);
  const bool again = absl::IsUnavailable(result.status()) && call->kept && !call->repeated &&
                     answer.fields.empty();
  if (!again) return Answer(call, std::move(result));
  call->repeated = true;
  connection = nullptr;  // it may still be open, but takes no more calls
  Begin(call);
}

void GrpcClient::State::OnDeadline(const CallPtr& call) {
  if (!call->done) return;
  if (std::erase(waiting, call) > 0) {
    return Answer(call, Unreachable(address, "no answer in time"));
  }
  const std::shared_ptr<Http2Connection> one = call->connection.lock();
  Answer(call, absl::DeadlineExceededError(fmt::format("the master at {} did not answer {} in time",
                                                       address, call->method)));
  // The connection may be dead, and its later answers would be useless.
  if (one != nullptr) one->Break("it does not answer");
}

void GrpcClient::State::Answer(const CallPtr& call, absl::StatusOr<std::string> result) {
  call->timer.cancel();
  calls.erase(call);
  std::exchange(call->done, nullptr)(std::move(result));
}

void GrpcClient::State::Stop() {
  for (const CallPtr& call : std::exchange(calls, {})) {
    call->done = nullptr;
    call->timer.cancel();
    if (const auto one = call->connection.lock()) one->Break("it is not needed any more");
  }
  waiting.clear();
  if (connector != nullptr) connector->Cancel();
  connector = nullptr;
  if (connection != nullptr) connection->Break("it is not needed any more");
  connection = nullptr;
}

GrpcClient::GrpcClient(asio::io_context* loop, std::string address, net::TlsContextSource tls)
    : state_(std::make_shared<State>(loop, std::move(address), std::move(tls))) {}

GrpcClient::~GrpcClient() {
  state_->Stop();
}

void GrpcClient::SetMetadata(std::vector<std::pair<std::string, std::string>> metadata) {
  state_->metadata = std::move(metadata);
}

void GrpcClient::Call(std::string_view method, std::string_view request,
                      std::chrono::milliseconds timeout, Done done) {
  const auto call = std::make_shared<State::Call>(state_->loop);
  call->method = method;
  call->request = request;
  call->deadline = std::chrono::steady_clock::now() + timeout;
  call->done = std::move(done);
  call->timer.expires_at(call->deadline);
  call->timer.async_wait([self = state_->weak_from_this(), call](const auto& error) {
    const auto state = self.lock();
    if (!error && state != nullptr) state->OnDeadline(call);
  });
  state_->calls.insert(call);
  const absl::Status usable = ParseHostPort(state_->address).status();
  if (usable.ok()) return state_->Begin(call);
  asio::post(*state_->loop, [self = state_->weak_from_this(), call, usable] {
    const auto state = self.lock();
    if (state != nullptr && call->done) state->Answer(call, usable);
  });
}

}  // namespace muster::sdk
