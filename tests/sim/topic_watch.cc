#include "tests/sim/topic_watch.h"

#include <memory>
#include <vector>

#include "tests/sim/sim_master.h"

namespace muster::sim {
namespace {

constexpr milliseconds kEvery{120};

}  // namespace

TopicWatch::TopicWatch(Env* env, ProcessRef process)
    : env_(env), process_(std::move(process)), rng_(env->Stream(9, process_->id)) {}

void TopicWatch::Look() {
  const SimTopic& topic = env_->topic;
  StreamLook look{.dataset = kStreamDataset, .cluster = "a cluster"};
  if (topic.reachable()) {
    for (uint32_t p = 0; p < SimTopic::kPartitions; ++p) {
      look.sights.push_back(
          {TopicPartition(p), topic.begin(p), topic.stable_end(p), {}, SimTopic::kOffsets});
    }
  } else {
    env_->probes.Hit(Probe::kBrokerDown);
    look.error = "no broker answers";
  }
  // What it saw may be old when it is told.
  env_->scheduler.After(nanoseconds(rng_.Below(80'000'000)), process_,
                        [this, look] { Tell(look); });
}

void TopicWatch::Tell(const StreamLook& look) {
  auto progress = std::make_shared<std::vector<StreamTable::Progress>>();
  env_->master->Post({[look, progress](MasterCore& core, StepTime at) {
                        core.SeeStream(look, at);
                        *progress = core.ledger().streams().ProgressOf(kStreamDataset);
                        return absl::OkStatus();
                      },
                      [this, progress](const absl::Status& status) {
                        if (!status.ok()) return;
                        for (const StreamTable::Progress& p : *progress) {
                          const uint32_t partition = p.position.partition.value();
                          env_->oracle.OnStreamCommitted(p.position.partition, p.committed);
                          if (rng_.Below(2) == 0) continue;
                          env_->topic.Forget(partition, p.committed);
                          if (p.committed > 0) env_->probes.Hit(Probe::kRetention);
                        }
                        env_->scheduler.After(kEvery, process_, [this] { Look(); });
                      }});
}

}  // namespace muster::sim
