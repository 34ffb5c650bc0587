#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "tests/support/status_matchers.h"
#include "tests/worker_sdk/core/core_fixture.h"
#include "tests/worker_sdk/net/fake_data_server.h"
#include "worker_sdk/core/row_check.h"
#include "worker_sdk/net/data_client.h"

namespace muster::sdk {

/// Collects what the client reports; tests wait for it.
class Collector final : public DataClient::Listener {
 public:
  struct Answer {
    std::vector<wire::PartReply> parts;
    std::vector<float> rows;
    std::vector<uint64_t> versions;
    bool lent = false;    // the rows were where the server had written them
    std::string why;      // unanswered
    std::string refused;  // what the server said of the frame
  };
  bool OnReply(const SendRequest& request, std::span<const wire::PartReply> parts,
               const ReceivedRows& rows, std::string_view) override {
    if (rows.check != nullptr && !rows.check->Finish()) return false;
    MutexLock lock(&mutex_);
    Answer& answer = answers_[request.id];
    answer.parts.assign(parts.begin(), parts.end());
    size_t floats = 0;
    for (size_t i = 0; rows.values != nullptr && i < parts.size(); ++i) {
      if (parts[i].code != wire::PartCode::kOk) continue;
      const bool unchanged = !rows.versions.empty() && rows.versions[i] == request.versions[i];
      if (unchanged && rows.versions[i] != wire::kNoVersion) continue;
      floats += request.batch->plan.parts[request.items[i].part].value_count;
    }
    answer.rows.assign(rows.values, rows.values + floats);
    answer.versions.assign(rows.versions.begin(), rows.versions.end());
    answer.lent = rows.values != nullptr && rows.block == nullptr;
    changed_.SignalAll();
    return true;
  }
  void OnUnanswered(RequestId id, std::string_view why) override {
    MutexLock lock(&mutex_);
    answers_[id].why = why;
    changed_.SignalAll();
  }
  void OnRefused(const SendRequest& request, std::string_view text) override {
    MutexLock lock(&mutex_);
    answers_[request.id].refused = text;
    changed_.SignalAll();
  }
  void OnCannotConnect(const LaneAddress&, std::string_view why) override {
    MutexLock lock(&mutex_);
    cannot_connect_ = why;
  }
  void OnTimer() override {
    MutexLock lock(&mutex_);
    ++timers_;
    changed_.SignalAll();
  }
  Answer Wait(uint64_t id) {
    MutexLock lock(&mutex_);
    while (!answers_.contains(RequestId(id))) changed_.Wait(&mutex_);
    return answers_[RequestId(id)];
  }
  bool Ended(uint64_t id) {
    MutexLock lock(&mutex_);
    return answers_.contains(RequestId(id));
  }
  /// Why the newest connection that was not greeted ended.
  std::string cannot_connect() {
    MutexLock lock(&mutex_);
    return cannot_connect_;
  }
  void WaitForTimer() {
    MutexLock lock(&mutex_);
    while (timers_ == 0) changed_.Wait(&mutex_);
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::map<RequestId, Answer> answers_ MUSTER_GUARDED_BY(mutex_);
  std::string cannot_connect_ MUSTER_GUARDED_BY(mutex_);
  int timers_ MUSTER_GUARDED_BY(mutex_) = 0;
};

inline SendRequest Request(uint64_t id, bool push, uint64_t incarnation = 1) {
  SendRequest request;
  request.id = RequestId(id);
  request.lane = {ServerId(0), ServerIncarnation(incarnation), 0};
  if (push)
    request.push = PushIdentity{{}, MinibatchIndex(static_cast<uint32_t>(id)), {}, {}, 0, {}};
  request.batch = BatchOfAllPartitions();
  for (uint32_t part = 0; part < kPartitions; ++part)
    request.items.push_back({part, OwnerEpoch(1)});
  return request;
}

/// A pull of a dense tensor whose parts have one block each; of part P it holds version P.
inline SendRequest DensePull(uint64_t id) {
  SendRequest request = Request(id, false);
  auto batch = std::make_shared<RowBatch>(*request.batch);
  for (PlanGroup& group : batch->plan.groups) group.dense = true;
  request.batch = batch;
  for (uint32_t part = 0; part < kPartitions; ++part) request.versions.push_back(part);
  return request;
}

inline std::vector<ServerEndpoint> Servers(std::vector<std::string> addresses,
                                           uint64_t incarnation = 1) {
  return {{ServerId(0), ServerIncarnation(incarnation), "ps-0", {std::move(addresses)}}};
}

inline DataClient::Options ClientOptions() {
  DataClient::Options options;
  options.job = {"id-1", "job"};
  options.worker = "worker-0";
  options.partition_count = kPartitions;
  return options;
}

class ClientFixture : public ::testing::Test {
 protected:
  void Start(DataClient::Options options = ClientOptions()) {
    client_ = std::make_unique<DataClient>(options, &collector_);
    client_->Start();
  }
  Collector collector_;
  std::unique_ptr<DataClient> client_;
};

}  // namespace muster::sdk
