// Trains the flights model in one process without Muster: the same records and the same network
// over rows kept in a hash map. What the distributed job is compared with, and the quickest way to
// try another network.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include "examples/flights/deepfm.h"
#include "examples/flights/flight_record.h"

namespace flights {
namespace {

struct Options {
  std::string folder;
  size_t batch = 256;
  int epochs = 3;
  size_t shard = 4096;  // records are shuffled inside shards of consecutive records, and those
  size_t stale = 0;     // batches whose gradients are not applied yet, as with asynchronous workers
  TrainingOptions training;
  double auc_min = 0;
  double log_loss_max = 1e9;
};

void AdagradStep(std::span<float> weights, std::span<float> squares, const float* gradient,
                 float learning_rate) {
  for (size_t i = 0; i < weights.size(); ++i) {
    squares[i] += gradient[i] * gradient[i];
    weights[i] -= learning_rate * gradient[i] / (std::sqrt(squares[i]) + 1e-10f);
  }
}

/// Rows by key: embedding, then first-order weight, each with its accumulators behind it.
class Store {
 public:
  Store(const DeepFmShape& shape, const Options& options)
      : dim_(shape.dim), options_(options), normal_(0, options.training.embedding_stddev) {
    const auto infos = DenseTensors(shape);
    for (size_t id = 0; id < kDenseCount; ++id) {
      size_t size = 1;
      for (const uint64_t extent : infos[id].shape) size *= extent;
      std::uniform_real_distribution<float> uniform(-infos[id].initial_bound,
                                                    infos[id].initial_bound);
      for (size_t i = 0; i < size; ++i) dense_[id].push_back(uniform(random_));
      dense_squares_[id].assign(size, options.training.initial_accumulator);
    }
  }

  /// The row of `key`: [dim] embedding, first-order weight, then as many accumulators.
  float* RowOf(uint64_t key) {
    std::vector<float>& row = rows_[key];
    if (row.empty()) {
      row.assign(2 * (dim_ + 1), options_.training.initial_accumulator);
      for (size_t i = 0; i < dim_; ++i) row[i] = normal_(random_);
      row[dim_] = 0;
    }
    return row.data();
  }
  const std::vector<float>& dense(size_t id) const { return dense_[id]; }

  void Apply(const std::vector<uint64_t>& keys, const DeepFmGradients<float>& gradients) {
    const float rate = options_.training.learning_rate * NextFactor();
    // Rows of a repeated key are summed before the optimizer sees them, as the SDK does.
    std::unordered_map<uint64_t, std::vector<float>> sums;
    for (size_t i = 0; i < keys.size(); ++i) {
      std::vector<float>& sum = sums[keys[i]];
      sum.resize(dim_ + 1);
      for (size_t d = 0; d < dim_; ++d) sum[d] += gradients.embeddings[i * dim_ + d];
      sum[dim_] += gradients.first_order[i];
    }
    for (const auto& [key, sum] : sums) {
      float* row = RowOf(key);
      AdagradStep({row, dim_ + 1}, {row + dim_ + 1, dim_ + 1}, sum.data(), rate);
    }
    for (size_t id = 0; id < kDenseCount; ++id) {
      AdagradStep(dense_[id], dense_squares_[id], gradients.dense[id].data(), rate);
    }
  }

 private:
  float NextFactor() {
    ++steps_;
    if (steps_ >= options_.training.warmup_steps) return 1;
    return static_cast<float>(steps_) / static_cast<float>(options_.training.warmup_steps);
  }

  size_t dim_;
  uint64_t steps_ = 0;
  Options options_;
  std::mt19937_64 random_{7};
  std::normal_distribution<float> normal_;
  std::unordered_map<uint64_t, std::vector<float>> rows_;
  std::array<std::vector<float>, kDenseCount> dense_;
  std::array<std::vector<float>, kDenseCount> dense_squares_;
};

bool Read(const std::string& path, std::vector<FlightRecord>& records) {
  std::ifstream file(path);
  std::string line;
  std::string error;
  FlightParser parser;
  if (!std::getline(file, line)) {
    std::fprintf(
        stderr,
        "flights_local: %s: cannot be read or is empty; examples/flights/prepare_data writes it\n",
        path.c_str());
    return false;
  }
  bool ok = parser.Open(line, error);
  for (FlightRecord record; ok && std::getline(file, line);) {
    ok = parser.Parse(line, record, error);
    if (ok) records.push_back(record);
  }
  if (!ok) {
    std::fprintf(stderr, "flights_local: %s: record %zu: %s\n", path.c_str(), records.size(),
                 error.c_str());
  }
  return ok;
}

/// One batch: the rows of its keys copied out of the store, as a worker would have pulled them.
struct Batch {
  std::vector<uint64_t> keys;
  std::vector<float> labels;
  std::vector<float> embeddings;
  std::vector<float> first_order;

  void Fill(const std::vector<FlightRecord>& records, std::span<const size_t> order, Store& store,
            size_t dim) {
    keys.clear();
    labels.clear();
    for (const size_t index : order) {
      keys.insert(keys.end(), records[index].keys.begin(), records[index].keys.end());
      labels.push_back(records[index].label);
    }
    embeddings.resize(keys.size() * dim);
    first_order.resize(keys.size());
    for (size_t i = 0; i < keys.size(); ++i) {
      const float* row = store.RowOf(keys[i]);
      std::copy_n(row, dim, &embeddings[i * dim]);
      first_order[i] = row[dim];
    }
  }
  DeepFmInputs<float> Inputs(const Store& store) const {
    DeepFmInputs<float> inputs{labels.size(), embeddings, first_order, {}};
    for (size_t id = 0; id < kDenseCount; ++id) inputs.dense[id] = store.dense(id);
    return inputs;
  }
};

/// The probability that a positive has a higher score than a negative; ties count half.
double Auc(std::vector<std::pair<float, float>> scored) {
  std::sort(scored.begin(), scored.end());
  double positives = 0;
  double negatives = 0;
  double area = 0;
  for (size_t begin = 0, end = 0; begin < scored.size(); begin = end) {
    double tied_positives = 0;
    while (end < scored.size() && scored[end].first == scored[begin].first) {
      tied_positives += scored[end++].second;
    }
    const double tied_negatives = static_cast<double>(end - begin) - tied_positives;
    area += tied_positives * (negatives + tied_negatives / 2);
    positives += tied_positives;
    negatives += tied_negatives;
  }
  return positives * negatives > 0 ? area / (positives * negatives) : 0.5;
}

/// Indices of all records as a job with `shuffle: true` sees them: shards of consecutive records in
/// random order, each shuffled inside.
std::vector<size_t> EpochOrder(size_t records, size_t shard_size, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<size_t> shards((records + shard_size - 1) / shard_size);
  std::iota(shards.begin(), shards.end(), 0);
  std::shuffle(shards.begin(), shards.end(), random);
  std::vector<size_t> order;
  for (const size_t shard : shards) {
    const size_t begin = order.size();
    for (size_t i = shard * shard_size; i < std::min(records, (shard + 1) * shard_size); ++i) {
      order.push_back(i);
    }
    std::shuffle(order.begin() + static_cast<ptrdiff_t>(begin), order.end(), random);
  }
  return order;
}

double TrainEpoch(const std::vector<FlightRecord>& records, int epoch, const Options& options,
                  DeepFm<float>& model, Store& store) {
  const std::vector<size_t> order =
      EpochOrder(records.size(), options.shard, static_cast<uint64_t>(epoch));
  struct UnderWay {
    std::vector<uint64_t> keys;
    DeepFmGradients<float> gradients;
  };
  std::deque<UnderWay> under_way;
  Batch batch;
  double loss = 0;
  for (size_t begin = 0; begin < order.size(); begin += options.batch) {
    const size_t size = std::min(options.batch, order.size() - begin);
    batch.Fill(records, std::span(order).subspan(begin, size), store, model.shape().dim);
    const DeepFmInputs<float> inputs = batch.Inputs(store);
    loss += LogLossSum(model.Forward(inputs), batch.labels);
    UnderWay& pushed = under_way.emplace_back();
    model.Backward(inputs, batch.labels, pushed.gradients);
    pushed.keys = batch.keys;
    while (under_way.size() > options.stale) {
      store.Apply(under_way.front().keys, under_way.front().gradients);
      under_way.pop_front();
    }
  }
  for (const UnderWay& pushed : under_way) store.Apply(pushed.keys, pushed.gradients);
  return loss / static_cast<double>(records.size());
}

struct Scores {
  double auc = 0;
  double log_loss = 0;
};

Scores Evaluate(const std::vector<FlightRecord>& records, const Options& options,
                DeepFm<float>& model, Store& store) {
  std::vector<size_t> order(records.size());
  std::iota(order.begin(), order.end(), 0);
  std::vector<std::pair<float, float>> scored;
  Batch batch;
  Scores scores;
  for (size_t begin = 0; begin < order.size(); begin += options.batch) {
    const size_t size = std::min(options.batch, order.size() - begin);
    batch.Fill(records, std::span(order).subspan(begin, size), store, model.shape().dim);
    const std::span<const float> probabilities = model.Forward(batch.Inputs(store));
    scores.log_loss += LogLossSum(probabilities, batch.labels);
    for (size_t i = 0; i < size; ++i) scored.emplace_back(probabilities[i], batch.labels[i]);
  }
  scores.log_loss /= static_cast<double>(records.size());
  scores.auc = Auc(std::move(scored));
  return scores;
}

constexpr char kHelp[] =
    R"(Usage: flights_local FOLDER [--batch N] [--epochs N] [--shard N] [--stale N]
                     [--learning-rate X] [--initial-accumulator X] [--embedding-stddev X]
                     [--warmup-steps N] [--auc-min X] [--log-loss-max X]

Trains on FOLDER/train.csv and tests on FOLDER/test.csv (examples/flights/prepare_data writes
both). --stale N applies every gradient N batches late, as asynchronous workers do. Exit code 1
when the last epoch misses --auc-min or --log-loss-max.

Example: flights_local /tmp/flights --epochs 3 --stale 8
)";

bool ParseOptions(int argc, char** argv, Options& options) {
  if (argc < 2 || argc % 2 != 0 || argv[1][0] == '-') return false;
  options.folder = argv[1];
  for (int i = 2; i < argc; i += 2) {
    const std::string name = argv[i];
    const double value = std::atof(argv[i + 1]);
    if (name == "--batch" && value >= 1) {
      options.batch = static_cast<size_t>(value);
    } else if (name == "--shard" && value >= 1) {
      options.shard = static_cast<size_t>(value);
    } else if (name == "--epochs") {
      options.epochs = static_cast<int>(value);
    } else if (name == "--stale") {
      options.stale = static_cast<size_t>(value);
    } else if (name == "--learning-rate") {
      options.training.learning_rate = static_cast<float>(value);
    } else if (name == "--initial-accumulator") {
      options.training.initial_accumulator = static_cast<float>(value);
    } else if (name == "--warmup-steps") {
      options.training.warmup_steps = static_cast<uint64_t>(value);
    } else if (name == "--embedding-stddev") {
      options.training.embedding_stddev = static_cast<float>(value);
    } else if (name == "--auc-min") {
      options.auc_min = value;
    } else if (name == "--log-loss-max") {
      options.log_loss_max = value;
    } else {
      return false;
    }
  }
  return true;
}

int Main(int argc, char** argv) {
  Options options;
  if (!ParseOptions(argc, argv, options)) {
    std::fputs(kHelp, stderr);
    return 2;
  }
  std::vector<FlightRecord> train;
  std::vector<FlightRecord> test;
  const auto read_began = std::chrono::steady_clock::now();
  if (!Read(options.folder + "/train.csv", train)) return 1;
  const std::chrono::duration<double> reading = std::chrono::steady_clock::now() - read_began;
  std::printf("read %zu records in %.4f s\n", train.size(), reading.count());
  if (!Read(options.folder + "/test.csv", test)) return 1;
  DeepFm<float> model{DeepFmShape{}};
  Store store(model.shape(), options);
  Scores scores;
  for (int epoch = 0; epoch < options.epochs; ++epoch) {
    const auto begin = std::chrono::steady_clock::now();
    const double loss = TrainEpoch(train, epoch, options, model, store);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    scores = Evaluate(test, options, model, store);
    std::printf(
        "epoch %d: train log loss %.4f, test AUC %.4f, test log loss %.4f, %.0f records/s\n", epoch,
        loss, scores.auc, scores.log_loss, static_cast<double>(train.size()) / took.count());
    std::fflush(stdout);
  }
  const bool good = scores.auc >= options.auc_min && scores.log_loss <= options.log_loss_max;
  if (!good) std::fprintf(stderr, "flights_local: the last epoch misses the figures asked for\n");
  return good ? 0 : 1;
}

}  // namespace
}  // namespace flights

int main(int argc, char** argv) {
  return flights::Main(argc, argv);
}
