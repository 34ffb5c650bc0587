#include <memory>

#include "base/check.h"
#include "base/status.h"
#include "sharding/codec/control_codec.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/targets.h"
#include "tests/master/core/core_fixture.h"

namespace muster::testing {
namespace {

/// A master with a worker that has said hello and holds two shards, and a registered server.
class Master : public CoreFixture {
 public:
  Master() {
    options.datasets.push_back(PlanFor("test", DatasetMode::kEvaluate, 1, 2));
    Start();
    MUSTER_CHECK(core->HelloWorker({"worker-0", 7}, 1, At()).ok());
    (void)Want(2);
    (void)core->RegisterServer({"ps-0", 9, {{"unix:/a"}}}, At());
    Sync();
  }

  void Call(uint64_t kind, std::string_view message) {
    switch (kind % 8) {
      case 0:
        return Answer<v1::WorkerExchangeRequest>(message, [this](const auto& request) {
          return core->ExchangeWorker(request, At()).status();
        });
      case 1:
        return Answer<v1::ServerExchangeRequest>(message, [this](const auto& request) {
          (void)core->ExchangeServer(request, At());
          return absl::OkStatus();
        });
      case 2:
        return Answer<v1::RegisterServerRequest>(message, [this](const auto& request) {
          return core->RegisterServer(request, At()).status();
        });
      case 3:
        return Answer<v1::Table>(message, [this](const auto& table) {
          return core->RegisterTable(table, At()).status();
        });
      case 4:
        now += std::chrono::milliseconds(message.size() * 10);
        return core->Tick(At());
      case 5:
        (void)core->HelloWorker({"worker-0", message.size()}, message.size() % 3, At());
        return;
      case 6:
        return Restart();
      default:
        (void)core->RetryShards({}, At());
        return;
    }
  }

 private:
  template <typename Message, typename Step>
  void Answer(std::string_view bytes, const Step& step) {
    Message message;
    if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return;
    const auto request = FromProto(message);
    if (request.ok()) (void)step(*request);
  }
};

}  // namespace

void FuzzMasterRequests(std::string_view bytes) {
  FuzzInput input(bytes);
  Master master;
  while (!input.empty()) {
    const uint64_t kind = input.Number(1);
    master.Call(kind, input.Sized());
    master.Sync();
  }
  // Whatever came, the journal can be gone on with.
  master.Restart();
}

}  // namespace muster::testing
