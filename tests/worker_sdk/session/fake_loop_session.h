#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "worker_sdk/session/loop_session.h"

namespace muster::internal {

/// A LoopSession without a job: it has no tables, and no wait is long. `Base` is the interface that
/// it implements a part of. Not thread-safe.
template <typename Base = LoopSession>
class FakeLoopSession : public Base {
 public:
  const HelloResponse& job() const override { return hello; }
  wire::Encoding encoding() const override { return wire::Encoding::kFloat32; }
  const TableSpec* FindTable(TableId) override { return nullptr; }
  std::shared_ptr<const std::vector<PartitionId>> sending_order() override {
    return std::make_shared<const std::vector<PartitionId>>(1);
  }
  void EnterLoop() override { ++loops; }
  void LeaveLoop() override { --loops; }
  sdk::KeepWaiting WaitingFor(const RunRef&, std::string, bool) override {
    return [](std::string_view) { return true; };
  }
  sdk::DeliveryId StartPull(std::shared_ptr<const sdk::RowBatch>) override { return {}; }
  std::optional<sdk::PullRows> WaitPull(const RunRef&, sdk::DeliveryId) override { return {}; }
  void CancelPull(sdk::DeliveryId) override {}
  void AwaitRoomForGradients(const RunRef&, uint64_t) override {}
  absl::Status WriteOutput(const RunRef&, const std::string& place, const std::string& name,
                           std::string_view bytes) override {
    outputs.push_back(place + "/" + name + ": " + std::string(bytes));
    return output_result;
  }
  void ProgramError(std::string message) override { errors.push_back(std::move(message)); }

  HelloResponse hello;
  int loops = 0;  // that threads are in
  std::vector<std::string> errors;
  std::vector<std::string> outputs;  // that were written: their objects' names and bytes
  absl::Status output_result;
};

}  // namespace muster::internal
