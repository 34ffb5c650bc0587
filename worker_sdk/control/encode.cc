#include <protozero/pbf_writer.hpp>
#include <type_traits>
#include <variant>

#include "base/text.h"
#include "worker_sdk/control/control_codec.h"

namespace muster::sdk {
namespace {

using Writer = protozero::pbf_writer;

// What trainers say may hold anything; one byte that is not UTF-8 would make the master refuse the
// whole message.
void Text(Writer* out, uint32_t field, std::string_view text) {
  if (!text.empty()) out->add_string(field, ValidUtf8(text));
}

void Shard(Writer* out, uint32_t field, const ShardId& id) {
  Writer shard(*out, field);
  shard.add_uint32(1, id.dataset.value());
  shard.add_uint32(2, id.epoch.value());
  shard.add_uint64(3, id.index.value());
}

struct OptimizerWriter {
  Writer* out;
  void Adaptive(float rate, float accumulator, float epsilon) const {
    out->add_float(2, rate);
    out->add_float(6, accumulator);
    out->add_float(7, epsilon);
  }
  void operator()(const SumSpec&) const {}
  void operator()(const SgdSpec& o) const {
    out->add_float(2, o.learning_rate);
    out->add_float(3, o.weight_decay);
  }
  void operator()(const MomentumSpec& o) const {
    out->add_float(2, o.learning_rate);
    out->add_float(3, o.weight_decay);
    out->add_float(4, o.momentum);
    out->add_bool(5, o.nesterov);
  }
  void operator()(const AdagradSpec& o) const {
    Adaptive(o.learning_rate, o.initial_accumulator, o.epsilon);
  }
  void operator()(const RowwiseAdagradSpec& o) const {
    Adaptive(o.learning_rate, o.initial_accumulator, o.epsilon);
  }
  void operator()(const AdamSpec& o) const {
    out->add_float(2, o.learning_rate);
    out->add_float(7, o.epsilon);
    out->add_float(8, o.beta1);
    out->add_float(9, o.beta2);
  }
  void operator()(const AdamWSpec& o) const {
    out->add_float(2, o.learning_rate);
    out->add_float(3, o.weight_decay);
    out->add_float(7, o.epsilon);
    out->add_float(8, o.beta1);
    out->add_float(9, o.beta2);
  }
  void operator()(const FtrlSpec& o) const {
    out->add_float(2, o.learning_rate);
    out->add_float(8, o.beta);
    out->add_float(10, o.lambda1);
    out->add_float(11, o.lambda2);
  }
};

void TableMessage(Writer* out, const TableSpec& table) {
  out->add_uint32(1, table.id.value());
  Text(out, 2, table.name);
  out->add_uint32(3, table.dim);
  out->add_packed_uint64(4, table.shape.begin(), table.shape.end());
  {
    Writer optimizer(*out, 5);
    optimizer.add_uint32(1, static_cast<uint32_t>(table.optimizer.index()));
    std::visit(OptimizerWriter{&optimizer}, table.optimizer);
  }
  {
    Writer initializer(*out, 6);
    initializer.add_uint32(1, static_cast<uint32_t>(table.initializer.kind));
    initializer.add_float(2, table.initializer.a);
    initializer.add_float(3, table.initializer.b);
  }
  {
    Writer schedule(*out, 7);
    schedule.add_uint32(1, static_cast<uint32_t>(table.schedule.kind));
    schedule.add_uint64(2, table.schedule.warmup_steps);
    schedule.add_uint64(3, table.schedule.period_steps);
    schedule.add_float(4, table.schedule.decay);
    schedule.add_float(5, table.schedule.final_factor);
  }
  Text(out, 8, table.warm_start_directory);
  Text(out, 9, table.warm_start_hash);
}

void Metrics(Writer* out, uint32_t field, const ShardMetrics& metrics) {
  Writer message(*out, field);
  message.add_uint64(1, metrics.records);
  message.add_uint64(2, metrics.rejected_records);
  for (const std::string& sample : metrics.reject_samples) {
    message.add_string(3, ValidUtf8(sample));
  }
  for (const auto& [name, mean] : metrics.means) {
    Writer entry(message, 4);
    Text(&entry, 1, name);
    entry.add_double(2, mean.sum);
    entry.add_double(3, mean.weight);
  }
  for (const auto& [name, histogram] : metrics.aucs) {
    std::vector<uint32_t> bins;
    std::vector<uint64_t> positives, negatives;
    for (const AucHistogram::Bin& bin : histogram.bins) {
      bins.push_back(bin.bin);
      positives.push_back(bin.positives);
      negatives.push_back(bin.negatives);
    }
    Writer entry(message, 5);
    Text(&entry, 1, name);
    entry.add_packed_uint32(2, bins.begin(), bins.end());
    entry.add_packed_uint64(3, positives.begin(), positives.end());
    entry.add_packed_uint64(4, negatives.begin(), negatives.end());
  }
}

void Held(Writer* out, const HeldLease& held) {
  Writer message(*out, 6);
  Shard(&message, 1, held.shard);
  message.add_uint64(2, held.token.value());
  message.add_uint64(3, held.restore_epoch.value());
  message.add_uint32(4, held.run.value());
  message.add_uint32(5, static_cast<uint32_t>(held.phase));
  message.add_uint32(6, held.minibatches_started);
}

void Done(Writer* out, const DoneReport& done) {
  Writer message(*out, 7);
  Shard(&message, 1, done.shard);
  message.add_uint64(2, done.token.value());
  message.add_uint64(3, done.restore_epoch.value());
  message.add_uint32(4, done.run.value());
  Metrics(&message, 5, done.metrics);
}

void Returned(Writer* out, const ReturnedLease& returned) {
  Writer message(*out, 8);
  Shard(&message, 1, returned.shard);
  message.add_uint64(2, returned.token.value());
  message.add_bool(3, returned.failure.has_value());
  Text(&message, 4, returned.failure.value_or(returned.shortage));
  message.add_bool(5, returned.fatal);
  message.add_uint32(6, static_cast<uint32_t>(returned.hand_back));
  message.add_uint32(7, returned.minibatches_started);
}

void Delays(Writer* out, const DatasetDelays& delays) {
  const std::span<const uint64_t> buckets = delays.delays.FilledBuckets();
  Writer message(*out, 12);
  message.add_uint32(1, delays.dataset.value());
  message.add_packed_uint64(2, buckets.begin(), buckets.end());
  message.add_uint64(3, static_cast<uint64_t>(delays.delays.sum().count()));
  message.commit();
}

void Peer(Writer* out, const PeerTimes& peer) {
  Writer message(*out, 11);
  message.add_uint32(1, peer.server.value());
  message.add_uint64(2, peer.incarnation.value());
  message.add_uint64(3, peer.pulls);
  message.add_uint64(4, peer.pull_us);
  message.add_uint64(5, peer.pushes);
  message.add_uint64(6, peer.push_us);
}

}  // namespace

std::string EncodeHelloRequest(std::string_view worker, uint64_t incarnation, uint64_t start,
                               std::string_view sdk_version) {
  std::string bytes;
  Writer out(bytes);
  Text(&out, 1, worker);
  out.add_uint64(2, incarnation);
  Text(&out, 3, sdk_version);
  out.add_uint64(4, start);
  return bytes;
}

std::string EncodeRegisterTableRequest(std::string_view worker, const TableSpec& table) {
  std::string bytes;
  Writer out(bytes);
  Text(&out, 1, worker);
  Writer message(out, 2);
  TableMessage(&message, table);
  message.commit();
  return bytes;
}

std::string EncodeExchangeRequest(const WorkerExchangeRequest& request) {
  std::string bytes;
  Writer out(bytes);
  Text(&out, 1, request.worker);
  out.add_uint64(2, request.incarnation);
  out.add_uint64(3, request.sequence);
  out.add_uint64(4, request.map_version.value());
  out.add_uint64(5, request.newest_grant.value());
  for (const HeldLease& held : request.held) Held(&out, held);
  for (const DoneReport& done : request.done) Done(&out, done);
  for (const ReturnedLease& returned : request.returned) Returned(&out, returned);
  out.add_uint32(9, request.want);
  Writer times(out, 10);
  times.add_uint64(1, request.times.total_us);
  times.add_uint64(2, request.times.wait_shard_us);
  times.add_uint64(3, request.times.wait_pull_us);
  times.add_uint64(4, request.times.wait_push_us);
  times.add_uint64(5, request.times.compute_us);
  times.add_uint64(6, request.times.minibatches_begun);
  times.add_uint64(7, request.times.minibatches_finished);
  times.add_uint64(8, request.times.records_trained);
  times.add_uint64(9, request.times.records_evaluated);
  times.commit();
  for (const PeerTimes& peer : request.peers) Peer(&out, peer);
  for (const DatasetDelays& delays : request.delays) Delays(&out, delays);
  return bytes;
}

}  // namespace muster::sdk
