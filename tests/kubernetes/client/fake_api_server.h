#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kubernetes/config/cluster_access.h"
#include "tests/kubernetes/client/certificates.h"

namespace muster::testing {

struct FakeRequest {
  std::string method;
  std::string target;
  std::string body;
  std::string authorization;
  std::string content_type;
  /// The subject of the client's certificate; empty if it has none.
  std::string client;
  /// Counts the connections, from 1.
  int connection = 0;
};

/// The connection that a request came on, for its answer: bytes as they go over the wire.
class FakeWire {
 public:
  virtual ~FakeWire() = default;
  /// Sends bytes at once.
  virtual void Send(const std::string& bytes) = 0;
  /// Ends the connection without a word of TLS, as a killed process does.
  virtual void Cut() = 0;
  /// Blocks until the client has closed the connection, or the server is destroyed.
  virtual void WaitForClose() = 0;
  /// Answers a request for a WebSocket; from then on only the functions below are used. True if the
  /// client asked for one with this subprotocol.
  virtual bool AcceptWebSocket(const std::string& protocol) = 0;
  virtual void SendMessage(const std::string& bytes) = 0;
  /// The client's next message; nothing: it has closed the WebSocket.
  virtual std::optional<std::string> ReadMessage() = 0;
  virtual void CloseWebSocket() = 0;
};

/// An HTTPS server on loopback that says whatever a test wants, in threads of its own.
class FakeApiServer {
 public:
  using Handler = std::function<void(const FakeRequest&, FakeWire&)>;

  /// `handler` is called for each request, from several threads.
  explicit FakeApiServer(Handler handler, bool wants_client_certificate = false);
  ~FakeApiServer();

  /// How to reach it, with its authority.
  kubernetes::ClusterAccess Access() const;
  const TestAuthority& authority() const { return authority_; }
  /// All requests so far.
  std::vector<FakeRequest> requests() const;
  /// Ends all connections, as a server that goes away does; new ones are served.
  void EndConnections();

 private:
  class Impl;
  TestAuthority authority_;
  std::unique_ptr<Impl> impl_;
};

/// A whole answer.
std::string Answer(int code, const std::string& body, const std::string& more_headers = "");
/// The beginning of an answer in chunks, and one chunk.
std::string ChunkedHead();
std::string Chunk(const std::string& bytes);
inline constexpr char kLastChunk[] = "0\r\n\r\n";

}  // namespace muster::testing
