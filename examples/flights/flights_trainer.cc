// A worker of the flights job: trains a DeepFM on the shards that the master hands out, and
// evaluates it on those of the test set. Start it with `muster run`, which sets the environment
// that the session reads. `--warm-start FOLDER`: it begins with the weights of that export.

#include <muster/muster.h>

#include <any>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "examples/flights/deepfm.h"
#include "examples/flights/flight_record.h"

namespace flights {
namespace {

/// What `prepare` leaves for the loop: keys `[records * kFieldCount]` and labels `[records]` of the
/// records that could be parsed.
struct PreparedBatch {
  std::vector<uint64_t> keys;
  std::vector<float> labels;
};

/// The tables of the job.
struct Tables {
  muster::Table embedding;
  muster::Table first_order;
  std::vector<muster::DenseTensor> dense;  // by DenseId
};

/// `weights`: the folder of an export with which the tables begin, or empty.
Tables Register(muster::Session& session, const DeepFmShape& shape, const std::string& weights) {
  const TrainingOptions training;
  const muster::Adagrad adagrad{.learning_rate = training.learning_rate,
                                .initial_accumulator = training.initial_accumulator};
  const muster::ConstantRate schedule{.warmup_steps = training.warmup_steps};
  Tables tables{
      session.SparseTable({.name = "embedding",
                           .dim = static_cast<uint32_t>(shape.dim),
                           .optimizer = adagrad,
                           .initializer = muster::Normal{.stddev = training.embedding_stddev},
                           .schedule = schedule,
                           .warm_start = weights}),
      session.SparseTable({.name = "first_order",
                           .dim = 1,
                           .optimizer = adagrad,
                           .schedule = schedule,
                           .warm_start = weights}),
      {}};
  for (const DenseInfo& info : DenseTensors(shape)) {
    muster::Initializer initializer = muster::Zero{};
    if (info.initial_bound > 0) {
      initializer = muster::Uniform{.low = -info.initial_bound, .high = info.initial_bound};
    }
    tables.dense.push_back(session.DenseTable({.name = std::string(info.name),
                                               .shape = info.shape,
                                               .optimizer = adagrad,
                                               .initializer = initializer,
                                               .schedule = schedule,
                                               .warm_start = weights}));
  }
  return tables;
}

/// Trains and evaluates minibatches. Used by one thread.
class Trainer {
 public:
  explicit Trainer(Tables tables) : tables_(std::move(tables)) {}

  void Run(muster::Shard& shard) {
    std::string error;
    if (!parser_.Open(shard.header().empty() ? kFlightsHeader : shard.header(), error)) {
      shard.Fail(error);
      return;
    }
    const auto prepare = [this](muster::Minibatch& batch) { Prepare(batch); };
    for (muster::Minibatch& batch : shard.Minibatches(prepare)) {
      const auto& prepared = std::any_cast<const PreparedBatch&>(batch.user_data());
      if (!prepared.labels.empty()) RunMinibatch(batch, prepared);
      batch.Commit();
    }
  }

 private:
  /// Parses the records and asks for their rows; called some minibatches ahead.
  void Prepare(muster::Minibatch& batch) {
    PreparedBatch prepared;
    FlightRecord record;
    std::string error;
    for (size_t i = 0; i < batch.records().size(); ++i) {
      if (!parser_.Parse(batch.records()[i], record, error)) {
        batch.Reject(i, error);
        continue;
      }
      prepared.keys.insert(prepared.keys.end(), record.keys.begin(), record.keys.end());
      prepared.labels.push_back(record.label);
    }
    batch.Need(tables_.embedding, prepared.keys);
    batch.Need(tables_.first_order, prepared.keys);
    for (const muster::DenseTensor& tensor : tables_.dense) batch.Need(tensor);
    batch.user_data() = std::move(prepared);
  }

  void RunMinibatch(muster::Minibatch& batch, const PreparedBatch& prepared) {
    DeepFmInputs<float> inputs;
    inputs.records = prepared.labels.size();
    inputs.divisor = batch.nominal_size();
    inputs.embeddings = batch.Pull(tables_.embedding, prepared.keys).values();
    inputs.first_order = batch.Pull(tables_.first_order, prepared.keys).values();
    for (size_t id = 0; id < kDenseCount; ++id) {
      inputs.dense[id] = batch.Pull(tables_.dense[id]).values();
    }
    const std::span<const float> probabilities = model_.Forward(inputs);
    const auto records = static_cast<double>(inputs.records);
    batch.Metric("logloss", LogLossSum(probabilities, prepared.labels) / records, records);
    if (batch.evaluate()) {
      const std::vector<uint8_t> labels(prepared.labels.begin(), prepared.labels.end());
      batch.Auc("auc", probabilities, labels);
      return;
    }
    model_.Backward(inputs, prepared.labels, gradients_);
    batch.Push(tables_.embedding, prepared.keys, gradients_.embeddings);
    batch.Push(tables_.first_order, prepared.keys, gradients_.first_order);
    for (size_t id = 0; id < kDenseCount; ++id) {
      batch.Push(tables_.dense[id], gradients_.dense[id]);
    }
  }

  Tables tables_;
  FlightParser parser_;
  DeepFm<float> model_{DeepFmShape{}};
  DeepFmGradients<float> gradients_;
};

}  // namespace
}  // namespace flights

int main(int argc, char** argv) {
  const std::span arguments(argv + 1, argc - 1);
  if (!arguments.empty() &&
      (arguments.size() != 2 || arguments[0] != std::string_view("--warm-start"))) {
    std::fprintf(stderr, "usage: flights_trainer [--warm-start FOLDER]\n");
    return 2;
  }
  const std::string weights = arguments.empty() ? "" : arguments[1];
  auto session = muster::Session::Connect(muster::SessionOptions::FromEnvironment()).value();
  flights::Trainer trainer(flights::Register(session, flights::DeepFmShape{}, weights));
  while (auto shard = session.NextShard()) trainer.Run(*shard);
  return session.Finish();
}
