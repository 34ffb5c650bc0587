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

/// What one peer may use, and what all peers together may use.
struct HttpLimits {
  /// If there are more connections, the one that has waited longest for a request is closed, so
  /// that slow peers do not keep others out. If none waits, the new connection gets 503.
  size_t connections_max = 64;
  uint32_t header_bytes_max = 16 << 10;
  uint64_t body_bytes_max = 64 << 10;
  /// How long a request's head may take, from its first byte to its last.
  std::chrono::milliseconds header_time_max{5'000};
  std::chrono::milliseconds body_time_max{10'000};
  /// How long the peer may take to read an answer.
  std::chrono::milliseconds write_time_max{10'000};
  std::chrono::milliseconds idle_time_max{30'000};
  /// The most requests that wait for the job or are being answered by it. Further ones get 503.
  size_t calls_max = 64;
  /// How many bytes the kernel may hold for a peer that does not read; 0: its default.
  int send_buffer_bytes = 0;
};

struct HttpServerOptions {
  /// Where it listens.
  std::string host = "127.0.0.1";
  /// Further hosts that requests may name.
  std::vector<std::string> names;
  /// The port; 0: a free one.
  uint16_t port = 0;
  /// Returns the token that requests must carry. The server's thread calls it while it serves.
  TokenReader read_token;
  std::vector<StaticFile> files;
  /// The server's certificate. Without one, the server speaks plain HTTP. Clients show the token
  /// and no certificate.
  std::optional<ServerTls> tls = std::nullopt;
  HttpLimits http;
  RestLimits rest;
  StreamLimits streams;
  /// How often streams get a status and are checked.
  std::chrono::milliseconds tick{1'000};
};

/// The REST interface on a socket. docs/rest.md describes it.
///
/// One thread reads, checks, answers and writes for all connections. It never waits for anybody.
/// Requests that need the job, whose calls may block, go to a pool of eight threads behind a
/// bounded queue. So a slow peer costs only its buffers, and a slow job only delays answers.
/// Neither delays /healthz, refusals or the dashboard's files.
///
/// Thread-safety: any thread may call NotifyEvents(). The other functions belong to the thread that
/// made the server.
class HttpServer {
 public:
  /// `job` and `clock` must outlive the server.
  HttpServer(HttpServerOptions options, JobApi* job, const Clock* clock);
  /// Stops.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  /// Binds and returns the port. Errors name the address, or say what is wrong with the
  /// certificate.
  absl::StatusOr<uint16_t> Listen();
  /// Starts the threads. Call once, after Listen().
  void Start();
  /// Says that there are new events. Streams get them now and not only with the next tick.
  void NotifyEvents();
  /// Sends the newest events and the last status to all streams, then calls Stop(). Waits for slow
  /// streams at most this long.
  void Finish(std::chrono::milliseconds at_most = std::chrono::seconds(1));
  /// Closes every connection, also streams, waits for calls that the job is answering, and joins
  /// the threads. Idempotent.
  void Stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace muster::scaler::rest
