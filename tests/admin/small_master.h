#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>

#include "admin/admin_client.h"
#include "base/clock.h"
#include "master/service/master_server.h"
#include "tests/support/memory_journal.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster::testing {

/// A real master of the job "flights", id "id-1", in this process: two shards, which no worker
/// takes.
class SmallMaster {
 public:
  explicit SmallMaster(uint32_t partitions = 1, const std::string& run_id = "run-1") {
    MasterServer::Options options;
    options.job.name = "flights";
    options.job.partitions = options.core.partitions = partitions;
    options.job.snapshot_directory = folder_.File("snapshots");
    options.core.datasets = {{"train", DatasetMode::kTrain, 1, 2, 20, 5,
                              [](EpochIndex, ShardIndex) { return ShardSize{10, 2}; }}};
    options.core.run_id = run_id;
    options.listen_address = "127.0.0.1:0";
    options.token_file = token_file();
    auto server = MasterServer::Start(std::move(options), &journal_, &clock_);
    EXPECT_THAT(server.status(), IsOk());
    server_ = *std::move(server);
    address_ = "127.0.0.1:" + std::to_string(server_->port());
  }

  const std::string& address() const { return address_; }
  std::string token_file() const { return folder_.File("token"); }
  std::unique_ptr<AdminClient> Client(const JobIdentity& job, WhenAway when_away) const {
    return MakeAdminClient({.address = address_, .job = job, .token_file = token_file()},
                           std::chrono::seconds(20), when_away);
  }
  void Stop() { server_.reset(); }

 private:
  TempDir folder_;
  const SystemClock clock_;
  MemoryJournal journal_{DurableState{}, "id-1"};
  std::unique_ptr<MasterServer> server_;
  std::string address_;
};

}  // namespace muster::testing
