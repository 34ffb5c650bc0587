#pragma once

#include <gmock/gmock.h>

#include <memory>
#include <optional>
#include <utility>

#include "scaler/rest/server/http_server.h"
#include "tests/scaler/rest/fake_job_api.h"
#include "tests/scaler/rest/server/http_client.h"
#include "tests/support/fake_clock.h"
#include "tests/support/status_matchers.h"

namespace muster::scaler::rest::testing {

/// A server over the fake job. Rates are not limited unless a test says so.
class RestFixture : public ::testing::Test {
 protected:
  static HttpServerOptions Options() {
    HttpServerOptions options;
    options.read_token = [] { return kToken; };
    options.tick = std::chrono::milliseconds(5);
    options.files = {{.path = "/", .content_type = "text/html", .bytes = "<!doctype html>"}};
    const Rate unlimited{.per_second = 1e9, .burst = 1e9};
    options.rest = {
        .per_connection = unlimited, .with_token = unlimited, .without_token = unlimited};
    // Far beyond what a loaded machine makes of a healthy connection.
    const std::chrono::milliseconds long_time(600'000);
    options.http.header_time_max = options.http.body_time_max = long_time;
    options.http.write_time_max = options.http.idle_time_max = long_time;
    return options;
  }

  void StartServer(HttpServerOptions options = Options()) {
    server_.emplace(std::move(options), &job_, &clock_);
    MUSTER_ASSERT_OK_AND_ASSIGN(port_, server_->Listen());
    server_->Start();
  }
  std::unique_ptr<HttpClient> Connect(int receive_buffer = 0) const {
    return std::make_unique<HttpClient>(port_, receive_buffer);
  }

  muster::testing::FakeClock clock_;
  FakeJobApi job_;
  uint16_t port_ = 0;
  std::optional<HttpServer> server_;
};

}  // namespace muster::scaler::rest::testing
