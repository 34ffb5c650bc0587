#include <fmt/core.h>
#include <signal.h>

#include <ctime>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "base/status.h"
#include "base/token_file.h"
#include "scaler/dashboard/dashboard_files.h"
#include "scaler/rest/server/http_server.h"
#include "tests/scaler/rest/fake_job_api.h"

namespace {

constexpr const char* kUsage =
    "usage: rest_fake_server TOKEN_FILE [PORT [--live [SHARDS [TOPIC_PARTITIONS [EPOCHS "
    "[GROUP]]]]]]\n"
    "\n"
    "REST interface and dashboard over a job that exists in memory only, until SIGINT or SIGTERM.\n"
    "--live: it goes on by itself, orders have outcomes, and a job that has ended takes none.\n"
    "TOPIC_PARTITIONS: two of its datasets are topics, one with so many partitions.\n"
    "EPOCHS: a long job, in the last of so many epochs, with metrics of a test.\n"
    "GROUP: 1: its workers are a synchronous group.\n";

}  // namespace

/// Prints its address.
int main(int argc, char** argv) {
  using namespace muster::scaler::rest;
  if (argc < 2) {
    fmt::print(stderr, "{}", kUsage);
    return 2;
  }
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  muster::InitLogging("rest-fake", muster::LogLevel::kInfo);

  const auto token = muster::LoadOrMakeToken(argv[1]);
  if (!token.ok()) {
    fmt::print(stderr, "{}\n", muster::Message(token.status()));
    return 1;
  }
  muster::SystemClock clock;
  testing::FakeJobApi::Options fake;
  if (argc > 3) {
    fake = {.partitions = 256,
            .live = true,
            .begin_wall_us = static_cast<uint64_t>(clock.Wall().count())};
    if (argc > 4) fake.shards_per_epoch = std::stoull(argv[4]);
    if (argc > 5) fake.topic_partitions = static_cast<uint32_t>(std::stoul(argv[5]));
    if (argc > 6) fake.epochs = static_cast<uint32_t>(std::stoul(argv[6]));
    fake.group = argc > 7 && std::string_view(argv[7]) == "1";
  }
  testing::FakeJobApi job(fake);
  if (fake.live) {
    job.AddHistory();
  } else {
    for (int i = 0; i < 10; ++i) job.AddEvent();
  }
  HttpServerOptions options{.read_token = [&] { return *token; },
                            .files = muster::scaler::dashboard::DashboardFiles()};
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
  constexpr timespec kStep{.tv_sec = 0, .tv_nsec = 250'000'000};
  while (sigtimedwait(&signals, nullptr, &kStep) < 0) {
    if (!fake.live) continue;
    job.Advance();
    server.NotifyEvents();
  }
  server.Stop();
  return 0;
}
