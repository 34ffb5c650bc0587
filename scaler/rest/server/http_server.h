#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "scaler/rest/event_stream.h"
#include "scaler/rest/job_api.h"
#include "scaler/rest/rest_service.h"
#include "security/tls_context.h"

namespace muster::scaler::rest {

/// What one peer, and all of them, may use.
struct HttpLimits {
  /// Beyond it, the connection that has waited longest for a request is closed, so that slow peers
  /// do not keep others out. If none waits, the new connection gets 503.
  size_t connections_max = 64;
  uint32_t header_bytes_max = 16 << 10;
  uint64_t body_bytes_max = 64 << 10;
  /// A request's head, from its first byte to its last.
  std::chrono::milliseconds header_time_max{5'000};
  std::chrono::milliseconds body_time_max{10'000};
  /// For the peer to take an answer.
  std::chrono::milliseconds write_time_max{10'000};
  std::chrono::milliseconds idle_time_max{30'000};
  /// Requests that wait for the job, or are with it; beyond them 503.
  size_t calls_max = 64;
  /// What the kernel may hold for one peer that does not read; 0: its default.
  int send_buffer_bytes = 0;
};

struct HttpServerOptions {
  /// Where it listens.
  std::string host = "127.0.0.1";
  /// More hosts by which requests may name it.
  std::vector<std::string> names;
  /// 0: one that is free.
  uint16_t port = 0;
  /// What requests must carry; read while it serves, on the thread that does.
  TokenReader read_token;
  std::vector<StaticFile> files;
  /// The server's certificate; without one, it speaks plain HTTP. Clients show none, but the token.
  std::optional<ServerTls> tls = std::nullopt;
  HttpLimits http;
  RestLimits rest;
  StreamLimits streams;
  /// How often streams get a status, and are looked after.
  std::chrono::milliseconds tick{1'000};
};

/// The REST interface on a socket; docs/rest.md is its reference.
///
/// One thread reads, checks, answers and writes for all connections and never waits for anybody. It
/// hands what needs the job, whose calls may block, to a pool of eight threads behind a bounded
/// queue. So a slow peer costs its buffers, a slow job makes answers wait, and neither holds up
/// /healthz, refusals or the dashboard's files.
///
/// Thread-safety: NotifyEvents() may be called by any thread; the rest by the one that made it.
class HttpServer {
 public:
  /// `job` and `clock` must outlive the server.
  HttpServer(HttpServerOptions options, JobApi* job, const Clock* clock);
  /// Stops.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  /// Binds and returns the port. Errors name the address, or what is wrong with the certificate.
  absl::StatusOr<uint16_t> Listen();
  /// Starts the threads. Call once, after Listen().
  void Start();
  /// There are new events: streams get them now instead of with the next tick.
  void NotifyEvents();
  /// Streams are told the newest events and the status for the last time; then Stop(). Waits for
  /// slow ones at most so long.
  void Finish(std::chrono::milliseconds at_most = std::chrono::seconds(1));
  /// Closes every connection, streams too, waits for calls that the job is answering, joins.
  /// Idempotent.
  void Stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace muster::scaler::rest
