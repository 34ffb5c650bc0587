// TLS without sockets: CPU time of a handshake for each side, and of the bytes of a connection,
// beside XXH3 and memcpy of the same bytes. One thread; medians of 5 runs after a warm-up. Run the
// release build on an idle machine:
//   build/release/benchmarks/tls_bench [--smoke]
#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "base/file.h"
#include "benchmarks/thread_cpu.h"
#include "net/tls_engine.h"
#include "security/certificate_authority.h"
#include "security/tls_context.h"

namespace muster::net {
namespace {

using Step = TlsEngine::Step;

struct Options {
  int runs = 5;
  int handshakes = 300;
  int megabytes = 256;
};

double Median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

/// The certificates of a job, in a folder that ends with the object.
class Certificates {
 public:
  Certificates() {
    directory_ = MakePrivateFolder(TemporaryFolder(), "muster-tls").value();
    MUSTER_CHECK(
        EnsureCertificates({.directory = directory_, .job_id = "bench"}, clock_.Wall()).ok());
    server_ = TlsContext::Make(
                  ServerTls{CredentialFilesOf(directory_, Role::kServer), "bench", {Role::kWorker}},
                  &clock_)
                  .value();
    client_ = TlsContext::Make(
                  ClientTls{CredentialFilesOf(directory_, Role::kWorker), "bench", Role::kServer},
                  &clock_)
                  .value();
  }
  ~Certificates() {
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
  }
  SSL_CTX* server() { return server_->Get()->native_handle(); }
  SSL_CTX* client() { return client_->Get()->native_handle(); }

 private:
  const SystemClock clock_;
  std::string directory_;
  std::unique_ptr<TlsContext> server_, client_;
};

void Carry(TlsEngine* from, TlsEngine* to) {
  const std::span<const std::byte> output = from->output();
  const std::span<std::byte> room = to->Room();
  const size_t bytes = std::min(output.size(), room.size());
  std::copy_n(output.begin(), bytes, room.begin());
  to->Received(bytes);
  from->Sent(bytes);
}

struct Sides {
  double client = 0, server = 0;  // CPU seconds
};

/// Continues `engine`, and counts the CPU time of it.
void Continue(TlsEngine* engine, double* seconds) {
  const double began = ThreadCpuSeconds();
  MUSTER_CHECK(engine->Handshake() != Step::kFailed);
  *seconds += ThreadCpuSeconds() - began;
}

void ShakeHands(TlsEngine* client, TlsEngine* server, Sides* sides) {
  while (!server->handshake_done()) {
    Continue(client, &sides->client);
    Carry(client, server);
    Continue(server, &sides->server);
    Carry(server, client);
  }
}

/// CPU seconds of one handshake, with the engines' own begin and end.
Sides OfHandshake(Certificates* certificates, int handshakes) {
  Sides sides;
  for (int i = 0; i < handshakes; ++i) {
    TlsEngine client(certificates->client(), TlsEngine::Side::kClient);
    TlsEngine server(certificates->server(), TlsEngine::Side::kServer);
    ShakeHands(&client, &server, &sides);
  }
  return {sides.client / handshakes, sides.server / handshakes};
}

/// CPU seconds of `megabytes` that one engine encrypts and another decrypts.
Sides OfBytes(Certificates* certificates, int megabytes) {
  TlsEngine client(certificates->client(), TlsEngine::Side::kClient);
  TlsEngine server(certificates->server(), TlsEngine::Side::kServer);
  Sides unused, sides;
  ShakeHands(&client, &server, &unused);
  std::vector<std::byte> from(1u << 20), into(TlsEngine::kRecordBytesMax);
  for (int m = 0; m < megabytes; ++m) {
    for (size_t at = 0; at < from.size(); at += into.size()) {
      const double began = ThreadCpuSeconds();
      MUSTER_CHECK(client.Write(std::span(from).subspan(at, into.size())));
      const double encrypted = ThreadCpuSeconds();
      Carry(&client, &server);
      const double carried = ThreadCpuSeconds();
      size_t bytes = 0;
      MUSTER_CHECK(server.Read(into, &bytes) == Step::kDone && bytes == into.size());
      sides.client += encrypted - began;
      sides.server += ThreadCpuSeconds() - carried;
    }
  }
  return sides;
}

double Timed(const std::function<void()>& work) {
  const double began = ThreadCpuSeconds();
  work();
  return ThreadCpuSeconds() - began;
}

void Run(const Options& options) {
  Certificates certificates;
  std::vector<double> client, server, encrypt, decrypt, hash, copy;
  std::vector<std::byte> from(1u << 20), into(1u << 20);
  volatile uint64_t sink = 0;
  for (int run = -1; run < options.runs; ++run) {
    const Sides handshake = OfHandshake(&certificates, options.handshakes);
    const Sides bytes = OfBytes(&certificates, options.megabytes);
    const double hashed = Timed([&] {
      for (int m = 0; m < options.megabytes; ++m) sink = XXH3_64bits(from.data(), from.size());
    });
    const double copied = Timed([&] {
      for (int m = 0; m < options.megabytes; ++m) {
        from[0] = std::byte(m);
        std::memcpy(into.data(), from.data(), from.size());
        sink = static_cast<uint64_t>(into[0]);
      }
    });
    if (run < 0) continue;
    client.push_back(handshake.client);
    server.push_back(handshake.server);
    encrypt.push_back(bytes.client);
    decrypt.push_back(bytes.server);
    hash.push_back(hashed);
    copy.push_back(copied);
  }
  const double gigabytes = options.megabytes * 1048576.0 / 1e9;
  fmt::print("handshake: CPU of the server {:.0f} us, of the client {:.0f} us; {:.0f}/s a core\n",
             1e6 * Median(server), 1e6 * Median(client), 1 / Median(server));
  fmt::print("bytes: encrypt {:.2f} GB/s, decrypt {:.2f} GB/s; XXH3 {:.2f}, memcpy {:.2f} GB/s\n",
             gigabytes / Median(encrypt), gigabytes / Median(decrypt), gigabytes / Median(hash),
             gigabytes / Median(copy));
}

}  // namespace
}  // namespace muster::net

int main(int argc, char** argv) {
  muster::net::Options options;
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--smoke") {
      options = {.runs = 1, .handshakes = 2, .megabytes = 1};
      continue;
    }
    fmt::print(stderr, "usage: tls_bench [--smoke]\n");
    return 2;
  }
  muster::net::Run(options);
  return 0;
}
