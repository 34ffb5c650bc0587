#include "tests/sim/topic_watch.h"

#include <memory>
#include <vector>

#include "tests/sim/sim_master.h"

namespace muster::sim {
namespace {

constexpr milliseconds kEvery{120};

}  // namespace

TopicWatch::TopicWatch(Env* env, ProcessRef process, SimMaster* master)
    : env_(env),
      process_(std::move(process)),
      master_(master),
      rng_(env->Stream(9, process_->id)),
      losses_(env->Stream(11, process_->id)) {}

void TopicWatch::Look() {
  const SimTopic& topic = env_->topic;
  StreamLook look{.dataset = kStreamDataset, .cluster = "a cluster"};
  // While more is to come: a job whose last ranges are lost would end.
  const bool hides =
      env_->knobs.losses && topic.begun() && topic.open() && env_->faulty && losses_.Below(8) == 0;
  if (topic.reachable()) {
    for (uint32_t p = 0; p < SimTopic::kPartitions; ++p) {
      look.partitions.push_back({TopicPartition(p),
                                 hides ? env_->topic.Hide(p, &losses_) : topic.begin(p),
                                 topic.stable_end(p),
                                 {},
                                 SimTopic::kOffsets});
    }
  } else {
    env_->probes.Hit(Probe::kBrokerDown);
    look.error = "no broker answers";
  }
  // What it saw may be old when it is told.
  env_->scheduler.After(nanoseconds(rng_.Below(80'000'000)), process_,
                        [this, look, hides] { Tell(look, hides); });
}

void TopicWatch::RetryLost(MasterCore* core, StepTime at) {
  if (core->state() != JobState::kRunning) return;  // drained: the next run's master has it done
  std::vector<ShardId> lost;
  for (const auto& [shard, record] : core->ledger().failures()) {
    if (record.failed && record.lost) lost.push_back(shard);
  }
  if (lost.empty()) return;
  env_->probes.Hit(Probe::kLostRange);
  const absl::Status status = core->RetryShards(lost, at).status();
  if (!status.ok()) env_->oracle.Fail("retry", std::string(status.message()));
}

void TopicWatch::Tell(const StreamLook& look, bool hides) {
  auto progress = std::make_shared<std::vector<StreamTable::Progress>>();
  const bool retries = env_->knobs.losses && !hides && look.error.empty();
  master_->Post({[this, look, retries, progress](MasterCore& core, StepTime at) {
                   if (retries) RetryLost(&core, at);
                   core.TakeLook(look, at);
                   *progress = core.ledger().streams().ProgressOf(kStreamDataset);
                   return absl::OkStatus();
                 },
                 [this, progress](const absl::Status& status) {
                   if (!status.ok()) return;
                   if (!progress->empty()) env_->topic.set_begun();
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
