#pragma once

#include <algorithm>
#include <array>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "base/file.h"
#include "muster/muster.h"
#include "proto/messages/slot_file.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tests/worker_sdk/net/fake_data_server.h"
#include "tests/worker_sdk/session/fake_master.h"

namespace muster {

using sdk::FakeDataServer;
using sdk::FakeMaster;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

inline constexpr uint32_t kPartitions = 8;
inline constexpr uint32_t kLines = 24, kMinibatch = 4;

/// One worker's session against a fake master and a fake server. Line i of every file is the text
/// "i"; the trainer pushes, per record, (1, i) to row i of a table of two columns.
class SessionTest : public ::testing::Test {
 protected:
  SessionTest() : master_(kPartitions) { NewServer(1); }
  /// A server that has lost every row, in a new incarnation.
  void NewServer(uint64_t incarnation) {
    server_ = std::make_unique<FakeDataServer>(FakeDataServer::Options{
        .incarnation = incarnation, .partition_count = kPartitions, .dim = 2});
    master_.SetServer(server_->address(), incarnation);
  }
  std::string AddShard(const std::string& name, DatasetMode mode = DatasetMode::kTrain) {
    std::string path = dir_.File(name);
    std::ofstream file(path);
    for (uint32_t i = 0; i < kLines; ++i) file << i << "\n";
    file.close();
    master_.AddShard(path, kMinibatch, mode);
    return path;
  }
  Session Connect() {
    Result<Session> session = Session::Connect({.master_address = master_.address(),
                                                .worker_name = "worker-0",
                                                .slot_file = dir_.File("slot")});
    EXPECT_TRUE(session.ok()) << session.status().message();
    return std::move(session).value();
  }
  static std::vector<uint64_t> KeysOf(const Minibatch& batch) {
    std::vector<uint64_t> keys;
    for (std::string_view record : batch.records())
      keys.push_back(std::stoull(std::string(record)));
    return keys;
  }
  static void PushOnes(const Table& table, Minibatch& batch) {
    std::vector<uint64_t> keys = KeysOf(batch);
    std::vector<float> gradients;
    for (uint64_t key : keys) gradients.insert(gradients.end(), {1, static_cast<float>(key)});
    batch.Push(table, keys, gradients);
  }
  /// The whole loop of a plain trainer.
  static void Train(Session& session, const Table& table) {
    while (std::optional<Shard> shard = session.NextShard()) {
      for (Minibatch& batch : shard->Minibatches()) {
        PushOnes(table, batch);
        batch.Commit();
      }
    }
  }
  void ExpectRows(float times) {
    EXPECT_EQ(server_->rows(), kLines);
    for (uint64_t key = 0; key < kLines; ++key) {
      EXPECT_THAT(server_->Row(1, key), ElementsAre(times, times * static_cast<float>(key))) << key;
    }
  }

  muster::testing::TempDir dir_;
  FakeMaster master_;
  std::unique_ptr<FakeDataServer> server_;
};

}  // namespace muster
