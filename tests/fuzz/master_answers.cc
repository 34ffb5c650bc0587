#include "base/check.h"
#include "base/status.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/targets.h"
#include "worker_sdk/control/control_codec.h"
#include "worker_sdk/core/worker_core.h"

namespace muster::testing {

void FuzzMasterAnswers(std::string_view bytes) {
  FuzzInput input(bytes);
  sdk::WorkerCore worker({.worker = "worker-0", .incarnation = 7});
  TimePoint now{std::chrono::seconds(1)};
  while (!input.empty()) {
    const uint64_t kind = input.Number(1) % 8;
    const std::string_view message = input.Sized();
    if (kind == 0) {
      (void)sdk::DecodeHelloResponse(message);
    } else if (kind == 1) {
      (void)sdk::DecodeRegisterTableResponse(message);
    } else if (kind == 2) {
      if (const auto shard = worker.TakeShard(); shard.has_value()) {
        worker.CompleteShard(shard->grant.token, shard->run, {});
      }
    } else if (worker.NextExchange(now) <= now) {
      const WorkerExchangeRequest request = worker.BeginExchange({}, now);
      MUSTER_CHECK(!sdk::EncodeExchangeRequest(request).empty());
      const auto reply = sdk::DecodeExchangeReply(message);
      if (reply.ok()) {
        worker.OnExchangeReply(*reply, now);
      } else {
        worker.OnExchangeFailed(now);
      }
    }
    now += std::chrono::seconds(2);
  }
}

}  // namespace muster::testing
