#include <fmt/core.h>
#include <signal.h>

#include <string>

#include "base/clock.h"
#include "base/log.h"
#include "base/status.h"
#include "scaler/rest/server/http_server.h"
#include "scaler/rest/server/token_file.h"
#include "tests/scaler/rest/fake_job_api.h"

/// `rest_fake_server TOKEN_FILE [PORT]`: the REST interface over a job that exists in memory only,
/// until SIGINT or SIGTERM. Prints its address.
int main(int argc, char** argv) {
  using namespace muster::scaler::rest;
  if (argc < 2) {
    fmt::print(stderr, "usage: rest_fake_server TOKEN_FILE [PORT]\n");
    return 2;
  }
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  muster::InitLogging("rest-fake", muster::LogLevel::kInfo);

  const auto token = LoadOrMakeToken(argv[1]);
  if (!token.ok()) {
    fmt::print(stderr, "{}\n", muster::Message(token.status()));
    return 1;
  }
  testing::FakeJobApi job;
  for (int i = 0; i < 10; ++i) job.AddEvent();
  muster::SystemClock clock;
  HttpServerOptions options{.token = *token};
  if (argc > 2) options.port = static_cast<uint16_t>(std::stoi(argv[2]));
  HttpServer server(std::move(options), &job, &clock);
  const auto port = server.Listen();
  if (!port.ok()) {
    fmt::print(stderr, "{}\n", muster::Message(port.status()));
    return 1;
  }
  server.Start();
  fmt::print("http://127.0.0.1:{}\n", *port);
  std::fflush(stdout);
  int signal = 0;
  sigwait(&signals, &signal);
  server.Stop();
  return 0;
}
