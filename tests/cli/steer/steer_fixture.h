#pragma once

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/file.h"
#include "base/token_file.h"
#include "cli/ask/query_commands.h"
#include "cli/state/state_directory.h"
#include "master/service/master_server.h"
#include "scaler/rest/server/http_server.h"
#include "tests/scaler/rest/fake_job_api.h"
#include "tests/support/memory_journal.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster::steer::testing {

/// A job that runs: a real master, and a REST interface over a job of its own that exists in memory
/// only, both found by the state directory.
class SteerFixture : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_THAT(state_.Create(), muster::testing::IsOk());
    ASSERT_THAT(MakeDirectories(state_.scaler()), muster::testing::IsOk());
  }

  void StartMaster() {
    MasterServer::Options options;
    options.job.name = "flights";
    options.job.partitions = options.core.partitions = 1;
    options.job.snapshot_directory = folder_.File("snapshots");
    options.core.datasets = {{"train", DatasetMode::kTrain, 1, 2, 20, 5,
                              [](EpochIndex, ShardIndex) { return ShardSize{10, 2}; }}};
    options.core.run_id = "run-1";
    options.listen_address = "127.0.0.1:0";
    options.token_file = state_.token();
    MUSTER_ASSERT_OK_AND_ASSIGN(master_,
                                MasterServer::Start(std::move(options), &journal_, &clock_));
    WriteEndpoint("127.0.0.1:" + std::to_string(master_->port()));
  }
  void WriteEndpoint(const std::string& address) {
    ASSERT_THAT(
        state_.WriteEndpoint(
            {.master = address, .pid = ::getpid(), .run_id = "run-1", .job = {"id-1", "flights"}}),
        muster::testing::IsOk());
  }

  void StartScaler() {
    MUSTER_ASSERT_OK_AND_ASSIGN(token_, LoadOrMakeToken(state_.token()));
    scaler::rest::HttpServerOptions options;
    options.read_token = [token = token_] { return token; };
    server_ = std::make_unique<scaler::rest::HttpServer>(std::move(options), &job_, &clock_);
    MUSTER_ASSERT_OK_AND_ASSIGN(port_, server_->Listen());
    server_->Start();
    ASSERT_THAT(state_.WriteRestAddress({.port = port_, .pid = ::getpid()}),
                muster::testing::IsOk());
  }
  /// It is killed: what it has written stays.
  void StopScaler() { server_.reset(); }

  QueryOptions Query(OutputFormat output = OutputFormat::kText) const {
    return {.target = {.job_file = "", .state_directory = state_.path()}, .output = output};
  }

  /// What a command printed, and its exit code.
  template <typename Command>
  int Call(Command command) {
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    const int code = command();
    out_ = ::testing::internal::GetCapturedStdout();
    err_ = ::testing::internal::GetCapturedStderr();
    return code;
  }

  muster::testing::TempDir folder_;
  const StateDirectory state_{folder_.File("state")};
  const SystemClock clock_;
  muster::testing::MemoryJournal journal_{DurableState{}, "id-1"};
  std::unique_ptr<MasterServer> master_;
  scaler::rest::testing::FakeJobApi job_;
  std::unique_ptr<scaler::rest::HttpServer> server_;
  uint16_t port_ = 0;
  std::string token_;
  std::string out_;
  std::string err_;
};

}  // namespace muster::steer::testing
