#include "base/status.h"
#include "sharding/codec/control_codec.h"
#include "sharding/codec/limits.h"

namespace muster {
namespace {

using codec_internal::CheckCount;
using codec_internal::CheckEnum;
using codec_internal::CheckText;

void WorkToProto(const ShardWork& from, v1::ShardWork* to) {
  to->set_dataset_name(from.dataset_name);
  to->set_mode(static_cast<uint32_t>(from.mode));
  to->set_path(from.path);
  to->set_source_bytes(from.source_bytes);
  to->set_source_hash(from.source_hash);
  to->set_first_record(from.first_record);
  to->set_record_count(from.record_count);
  to->set_byte_begin(from.byte_begin);
  to->set_byte_end(from.byte_end);
  to->set_minibatch_size(from.minibatch_size);
  to->set_has_header(from.has_header);
  to->set_shuffle_seed(from.shuffle_seed);
  to->set_first_step(from.first_step);
  if (!from.stream.has_value()) return;
  v1::StreamWork* stream = to->mutable_stream();
  stream->set_topic(from.stream->topic);
  stream->set_partition(from.stream->partition.value());
  stream->set_begin(from.stream->begin);
  stream->set_end(from.stream->end);
}

absl::StatusOr<ShardWork> WorkFromProto(const v1::ShardWork& from) {
  MUSTER_RETURN_IF_ERROR(CheckText("work.dataset_name", from.dataset_name(), kNameBytesMax));
  MUSTER_RETURN_IF_ERROR(CheckText("work.path", from.path(), kTextBytesMax));
  MUSTER_RETURN_IF_ERROR(CheckEnum("work.mode", from.mode(), 1));
  ShardWork to;
  to.dataset_name = from.dataset_name();
  to.mode = static_cast<DatasetMode>(from.mode());
  to.path = from.path();
  to.source_bytes = from.source_bytes();
  to.source_hash = from.source_hash();
  to.first_record = from.first_record();
  to.record_count = from.record_count();
  to.byte_begin = from.byte_begin();
  to.byte_end = from.byte_end();
  to.minibatch_size = from.minibatch_size();
  to.has_header = from.has_header();
  to.shuffle_seed = from.shuffle_seed();
  to.first_step = from.first_step();
  if (from.has_stream()) {
    const v1::StreamWork& stream = from.stream();
    MUSTER_RETURN_IF_ERROR(CheckText("work.stream.topic", stream.topic(), kNameBytesMax));
    to.stream = {stream.topic(), TopicPartition(stream.partition()), stream.begin(), stream.end()};
  }
  return to;
}

// The three fields that name a lease, alike in every message that has them.
template <typename From, typename To>
void LeaseToProto(const From& from, To* to) {
  ToProto(from.shard, to->mutable_shard());
  to->set_token(from.token.value());
}
template <typename From, typename To>
void LeaseFromProto(const From& from, To* to) {
  to->shard = FromProto(from.shard());
  to->token = LeaseToken::FromValue(from.token());
}

absl::Status HeldFromProto(const v1::WorkerExchangeRequest& from, WorkerExchangeRequest* to) {
  for (const v1::HeldLease& item : from.held()) {
    MUSTER_RETURN_IF_ERROR(CheckEnum("held.phase", item.phase(), 2));
    HeldLease& held = to->held.emplace_back();
    LeaseFromProto(item, &held);
    held.restore_epoch = RestoreEpoch(item.restore_epoch());
    held.run = RunNumber(item.run());
    held.phase = static_cast<LeasePhase>(item.phase());
    held.minibatches_started = item.minibatches_started();
  }
  return absl::OkStatus();
}

absl::Status ReportsFromProto(const v1::WorkerExchangeRequest& from, WorkerExchangeRequest* to) {
  for (const v1::DoneReport& item : from.done()) {
    DoneReport& done = to->done.emplace_back();
    LeaseFromProto(item, &done);
    done.restore_epoch = RestoreEpoch(item.restore_epoch());
    done.run = RunNumber(item.run());
    MUSTER_ASSIGN_OR_RETURN(done.metrics, FromProto(item.metrics()));
  }
  for (const v1::ReturnedLease& item : from.returned()) {
    MUSTER_RETURN_IF_ERROR(CheckText("returned.reason", item.reason(), kTextBytesMax));
    ReturnedLease& returned = to->returned.emplace_back();
    LeaseFromProto(item, &returned);
    MUSTER_RETURN_IF_ERROR(CheckEnum("returned.hand_back", item.hand_back(),
                                     static_cast<uint32_t>(HandBack::kShortage)));
    returned.hand_back = static_cast<HandBack>(item.hand_back());
    if (item.failed()) {
      returned.failure = item.reason();
    } else {
      returned.shortage = item.reason();
    }
    returned.fatal = item.fatal();
    returned.minibatches_started = item.minibatches_started();
  }
  return absl::OkStatus();
}

}  // namespace

void ToProto(const ShardId& from, v1::ShardId* to) {
  to->set_dataset(from.dataset.value());
  to->set_epoch(from.epoch.value());
  to->set_index(from.index.value());
}

ShardId FromProto(const v1::ShardId& from) {
  return {DatasetId(from.dataset()), EpochIndex(from.epoch()), ShardIndex(from.index())};
}

void ToProto(const WorkerTimes& from, v1::WorkerTimes* to) {
  to->set_total_us(from.total_us);
  to->set_wait_shard_us(from.wait_shard_us);
  to->set_wait_pull_us(from.wait_pull_us);
  to->set_wait_push_us(from.wait_push_us);
  to->set_compute_us(from.compute_us);
  to->set_minibatches_begun(from.minibatches_begun);
  to->set_minibatches_finished(from.minibatches_finished);
  to->set_records_trained(from.records_trained);
  to->set_records_evaluated(from.records_evaluated);
}

WorkerTimes FromProto(const v1::WorkerTimes& from) {
  return {from.total_us(),
          from.wait_shard_us(),
          from.wait_pull_us(),
          from.wait_push_us(),
          from.compute_us(),
          from.minibatches_begun(),
          from.minibatches_finished(),
          from.records_trained(),
          from.records_evaluated()};
}

void ToProto(const ShardMetrics& from, v1::ShardMetrics* to) {
  to->set_records(from.records);
  to->set_rejected_records(from.rejected_records);
  for (const std::string& sample : from.reject_samples) to->add_reject_samples(sample);
  for (const auto& [name, mean] : from.means) {
    v1::Mean* item = to->add_means();
    item->set_name(name);
    item->set_sum(mean.sum);
    item->set_weight(mean.weight);
  }
  for (const auto& [name, histogram] : from.aucs) {
    v1::Auc* item = to->add_aucs();
    item->set_name(name);
    for (const AucHistogram::Bin& bin : histogram.bins) {
      item->add_bins(bin.bin);
      item->add_positives(bin.positives);
      item->add_negatives(bin.negatives);
    }
  }
}

absl::StatusOr<ShardMetrics> FromProto(const v1::ShardMetrics& from) {
  MUSTER_RETURN_IF_ERROR(CheckCount("metrics.means", from.means_size(), kMetricsPerShardMax));
  MUSTER_RETURN_IF_ERROR(CheckCount("metrics.aucs", from.aucs_size(), kMetricsPerShardMax));
  MUSTER_RETURN_IF_ERROR(CheckCount("metrics.reject_samples", from.reject_samples_size(),
                                    static_cast<int>(ShardMetrics::kRejectSamplesMax)));
  ShardMetrics to;
  to.records = from.records();
  to.rejected_records = from.rejected_records();
  for (const std::string& sample : from.reject_samples()) {
    MUSTER_RETURN_IF_ERROR(CheckText("metrics.reject_samples", sample, kTextBytesMax));
    to.reject_samples.push_back(sample);
  }
  for (const v1::Mean& item : from.means()) {
    MUSTER_RETURN_IF_ERROR(CheckText("metrics.means.name", item.name(), kNameBytesMax));
    to.means[item.name()] = {item.sum(), item.weight()};
  }
  for (const v1::Auc& item : from.aucs()) {
    MUSTER_RETURN_IF_ERROR(CheckText("metrics.aucs.name", item.name(), kNameBytesMax));
    if (item.positives_size() != item.bins_size() || item.negatives_size() != item.bins_size()) {
      return absl::InvalidArgumentError(
          fmt::format("metrics.aucs '{}': {} bins, {} positives and {} negatives differ in length",
                      item.name(), item.bins_size(), item.positives_size(), item.negatives_size()));
    }
    std::vector<AucHistogram::Bin> bins;
    for (int i = 0; i < item.bins_size(); ++i) {
      MUSTER_RETURN_IF_ERROR(CheckEnum("metrics.aucs.bins", item.bins(i), AucHistogram::kBins - 1));
      if (!bins.empty() && item.bins(i) <= bins.back().bin) {
        return absl::InvalidArgumentError(
            fmt::format("metrics.aucs '{}': bin {} comes after bin {}; they must ascend",
                        item.name(), item.bins(i), bins.back().bin));
      }
      bins.push_back({item.bins(i), item.positives(i), item.negatives(i)});
    }
    bins.shrink_to_fit();
    to.aucs[item.name()].bins = std::move(bins);
  }
  return to;
}

void ToProto(const WorkerExchangeRequest& from, v1::WorkerExchangeRequest* to) {
  to->set_worker(from.worker);
  to->set_incarnation(from.incarnation);
  to->set_sequence(from.sequence);
  to->set_map_version(from.map_version.value());
  to->set_newest_grant(from.newest_grant.value());
  for (const HeldLease& held : from.held) {
    v1::HeldLease* item = to->add_held();
    LeaseToProto(held, item);
    item->set_restore_epoch(held.restore_epoch.value());
    item->set_run(held.run.value());
    item->set_phase(static_cast<uint32_t>(held.phase));
    item->set_minibatches_started(held.minibatches_started);
  }
  for (const DoneReport& done : from.done) {
    v1::DoneReport* item = to->add_done();
    LeaseToProto(done, item);
    item->set_restore_epoch(done.restore_epoch.value());
    item->set_run(done.run.value());
    ToProto(done.metrics, item->mutable_metrics());
  }
  for (const ReturnedLease& returned : from.returned) {
    v1::ReturnedLease* item = to->add_returned();
    LeaseToProto(returned, item);
    item->set_failed(returned.failure.has_value());
    item->set_reason(returned.failure.value_or(returned.shortage));
    item->set_fatal(returned.fatal);
    item->set_hand_back(static_cast<uint32_t>(returned.hand_back));
    item->set_minibatches_started(returned.minibatches_started);
  }
  to->set_want(from.want);
  ToProto(from.times, to->mutable_times());
  for (const PeerTimes& peer : from.peers) {
    v1::PeerTimes* item = to->add_peers();
    item->set_server(peer.server.value());
    item->set_incarnation(peer.incarnation.value());
    item->set_pulls(peer.pulls);
    item->set_pull_us(peer.pull_us);
    item->set_pushes(peer.pushes);
    item->set_push_us(peer.push_us);
  }
  for (const DatasetDelays& delays : from.delays) {
    v1::DatasetDelays* item = to->add_delays();
    item->set_dataset(delays.dataset.value());
    item->set_sum_ms(static_cast<uint64_t>(delays.delays.sum().count()));
    for (const uint64_t count : delays.delays.FilledBuckets()) item->add_buckets(count);
  }
}

absl::StatusOr<WorkerExchangeRequest> FromProto(const v1::WorkerExchangeRequest& from) {
  MUSTER_RETURN_IF_ERROR(CheckText("worker", from.worker(), kNameBytesMax));
  MUSTER_RETURN_IF_ERROR(CheckCount("held", from.held_size(), kLeasesPerCallMax));
  MUSTER_RETURN_IF_ERROR(CheckCount("done", from.done_size(), kLeasesPerCallMax));
  MUSTER_RETURN_IF_ERROR(CheckCount("returned", from.returned_size(), kLeasesPerCallMax));
  MUSTER_RETURN_IF_ERROR(CheckEnum("want", from.want(), kLeasesPerCallMax));
  MUSTER_RETURN_IF_ERROR(
      CheckCount("peers", from.peers_size(), static_cast<int>(kPeersPerCallMax)));
  MUSTER_RETURN_IF_ERROR(
      CheckCount("delays", from.delays_size(), static_cast<int>(kDelaysPerCallMax)));
  WorkerExchangeRequest to;
  to.worker = from.worker();
  to.incarnation = from.incarnation();
  to.sequence = from.sequence();
  to.map_version = MapVersion(from.map_version());
  to.newest_grant = LeaseToken::FromValue(from.newest_grant());
  MUSTER_RETURN_IF_ERROR(HeldFromProto(from, &to));
  MUSTER_RETURN_IF_ERROR(ReportsFromProto(from, &to));
  to.want = from.want();
  to.times = FromProto(from.times());
  for (const v1::PeerTimes& item : from.peers()) {
    to.peers.push_back({ServerId(item.server()), ServerIncarnation(item.incarnation()),
                        item.pulls(), item.pull_us(), item.pushes(), item.push_us()});
  }
  for (const v1::DatasetDelays& item : from.delays()) {
    MUSTER_RETURN_IF_ERROR(CheckCount("delays.buckets", item.buckets_size(),
                                      static_cast<int>(DelayHistogram::kBuckets)));
    DatasetDelays& delays = to.delays.emplace_back();
    delays.dataset = DatasetId(item.dataset());
    for (int bucket = 0; bucket < item.buckets_size(); ++bucket) {
      delays.delays.AddToBucket(static_cast<size_t>(bucket), item.buckets(bucket));
    }
    delays.delays.AddToSum(item.sum_ms());
  }
  return to;
}

void ToProto(const WorkerExchangeReply& from, v1::WorkerExchangeReply* to) {
  to->set_master_incarnation(from.master_incarnation.value());
  to->set_directive(static_cast<uint32_t>(from.directive));
  for (const ShardGrant& grant : from.grants) {
    v1::ShardGrant* item = to->add_grants();
    LeaseToProto(grant, item);
    item->set_restore_epoch(grant.restore_epoch.value());
    WorkToProto(grant.work, item->mutable_work());
  }
  for (const DoneVerdict& verdict : from.verdicts) {
    v1::DoneVerdict* item = to->add_verdicts();
    LeaseToProto(verdict, item);
    item->set_run(verdict.run.value());
    item->set_code(static_cast<uint32_t>(verdict.code));
    item->set_restore_epoch(verdict.restore_epoch.value());
  }
  for (LeaseToken token : from.lost) to->add_lost(token.value());
  if (from.map.has_value()) ToProto(*from.map, to->mutable_map());
  to->set_heartbeat_interval_ms(static_cast<uint64_t>(from.heartbeat_interval.count()));
}

absl::StatusOr<WorkerExchangeReply> FromProto(const v1::WorkerExchangeReply& from) {
  MUSTER_RETURN_IF_ERROR(CheckEnum("directive", from.directive(), 2));
  MUSTER_RETURN_IF_ERROR(CheckCount("grants", from.grants_size(), kLeasesPerCallMax));
  MUSTER_RETURN_IF_ERROR(CheckCount("verdicts", from.verdicts_size(), kLeasesPerCallMax));
  MUSTER_RETURN_IF_ERROR(CheckCount("lost", from.lost_size(), kLeasesPerCallMax));
  WorkerExchangeReply to;
  to.master_incarnation = MasterIncarnation(from.master_incarnation());
  to.directive = static_cast<JobDirective>(from.directive());
  for (const v1::ShardGrant& item : from.grants()) {
    ShardGrant& grant = to.grants.emplace_back();
    LeaseFromProto(item, &grant);
    grant.restore_epoch = RestoreEpoch(item.restore_epoch());
    MUSTER_ASSIGN_OR_RETURN(grant.work, WorkFromProto(item.work()));
  }
  for (const v1::DoneVerdict& item : from.verdicts()) {
    MUSTER_RETURN_IF_ERROR(CheckEnum("verdicts.code", item.code(), 2));
    DoneVerdict& verdict = to.verdicts.emplace_back();
    LeaseFromProto(item, &verdict);
    verdict.run = RunNumber(item.run());
    verdict.code = static_cast<DoneCode>(item.code());
    verdict.restore_epoch = RestoreEpoch(item.restore_epoch());
  }
  for (uint64_t token : from.lost()) to.lost.push_back(LeaseToken::FromValue(token));
  if (from.has_map()) {
    MUSTER_ASSIGN_OR_RETURN(to.map, FromProto(from.map()));
  }
  to.heartbeat_interval = std::chrono::milliseconds(from.heartbeat_interval_ms());
  return to;
}

}  // namespace muster
