// A member of a synchronous group for tests: fits weights to numbers by floating-point arithmetic
// whose result shows every minibatch, its order apart. At its end it writes the weights, bit by
// bit.
#include <array>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "cli/verify/slowness.h"
#include "muster/muster.h"
#include "tests/integration/groups/group_tables.h"
#include "tests/integration/groups/trainer_gpu.h"

namespace {

using muster::testing::TrainerGpu;

constexpr size_t kWeights = 257;
constexpr int64_t kOddUpdate = 10;

struct Options {
  muster::verify::Slowness slowness;
  std::string hang_while;       // a minibatch that begins while this file exists does not end
  std::string stay_away_while;  // a process that begins while this file exists calls no NextStep
  std::string output;           // the weights are written to OUTPUT-WORKER.bin
  float initial = 0.5F;
  /// Every such minibatch of the process fails its step: by Fail, by NaN, by leaving the loop, in
  /// turn. 0: none.
  uint64_t fail_every = 0;
  /// A library with the interfaces of NCCL and of CUDA's driver; empty: the ring adds.
  std::string nccl;
  std::string driver;      // CUDA's driver; empty: it is in `nccl`
  bool on_device = false;  // gradients and sums are in the GPU's memory
  /// The gradient is in so many buckets, of different types of fixed point.
  uint64_t buckets = 1;
  std::string plugin;  // a library that adds; empty: the ring adds
  /// Empty: the sum of all gradients. Else one of DiLoCo's options, below.
  std::string algorithm;
  bool tables = false;  // each record also adds whole numbers to tables
  /// This member applies the update kOddUpdate otherwise than the others.
  std::string odd_member;
};

/// Nullopt if the members do not train with local steps.
std::optional<muster::DiLoCoOptions> OuterOptions(const std::string& algorithm) {
  const muster::SumOptions sum{.type = muster::SumType::kFloat32};
  if (algorithm == "local-sgd") {
    return muster::DiLoCoOptions{.outer = muster::OuterSgd{}, .sum = sum};
  }
  if (algorithm == "diloco") return muster::DiLoCoOptions{};
  if (algorithm == "streaming") return muster::DiLoCoOptions{.fragments = 3, .mixing = 0.25F};
  return std::nullopt;
}

/// What a record wants of a weight: a number that differs for all pairs.
float Target(uint64_t number, size_t weight) {
  const uint64_t mixed =
      (number + 1) * 0x9E3779B97F4A7C15ULL ^ (weight + 1) * 0xC2B2AE3D27D4EB4FULL;
  return static_cast<float>(mixed >> 40) / static_cast<float>(1 << 24);
}

void Descend(std::span<const float> gradient, size_t records, std::span<float> weights) {
  for (size_t i = 0; i < gradient.size(); ++i) {
    weights[i] -= 0.25F * gradient[i] / static_cast<float>(records);
  }
}

/// Of the sum over the records. Returns their mean loss.
double Gradient(std::span<const float> weights, std::span<const std::string_view> records,
                std::span<float> gradient) {
  std::ranges::fill(gradient, 0.0F);
  double loss = 0;
  for (const std::string_view record : records) {
    const uint64_t number = std::strtoull(std::string(record).c_str(), nullptr, 10);
    for (size_t i = 0; i < kWeights; ++i) {
      const float error = weights[i] - Target(number, i);
      gradient[i] += std::tanh(error);
      loss += std::abs(error);
    }
  }
  return loss / static_cast<double>(kWeights * records.size());
}

Options Parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    const std::string value = argv[i + 1];
    if (name == "--slow-us") options.slowness.each = std::chrono::microseconds(std::stoull(value));
    if (name == "--slow-while") options.slowness.while_file = value;
    if (name == "--hang-while") options.hang_while = value;
    if (name == "--stay-away-while") options.stay_away_while = value;
    if (name == "--output") options.output = value;
    if (name == "--fail-every") options.fail_every = std::stoull(value);
    if (name == "--nccl") options.nccl = value;
    if (name == "--on-device") options.on_device = value == "true";
    if (name == "--driver") options.driver = value;
    if (name == "--buckets") options.buckets = std::stoull(value);
    if (name == "--plugin") options.plugin = value;
    if (name == "--algorithm") options.algorithm = value;
    if (name == "--tables") options.tables = value == "1";
    if (name == "--odd-member") options.odd_member = value;
    if (name == "--initial") options.initial = std::stof(value);
  }
  return options;
}

muster::CollectiveOptions CollectiveOf(const Options& options) {
  muster::CollectiveOptions collective;
  if (!options.nccl.empty()) {
    collective = {.backend = muster::CollectiveOptions::Backend::kNccl,
                  .library = options.nccl,
                  .driver = options.driver.empty() ? options.nccl : options.driver};
  }
  if (!options.plugin.empty()) {
    collective.backend = muster::CollectiveOptions::Backend::kPlugin;
    collective.library = options.plugin;
  }
  return collective;
}

std::string_view NodeName() {
  const char* const name = std::getenv("MUSTER_NODE");
  return name == nullptr ? "worker" : name;
}

/// The weights, and the number of updates.
void Write(const Options& options, std::span<const float> weights, int64_t updates) {
  std::ofstream file(options.output + "-" + std::string(NodeName()) + ".bin", std::ios::binary);
  file.write(reinterpret_cast<const char*>(weights.data()), kWeights * sizeof(float));
  file.write(reinterpret_cast<const char*>(&updates), sizeof(updates));
}

muster::Prepare Preparing(const std::optional<GroupTables>& tables) {
  return [&tables](muster::Minibatch& minibatch) {
    if (tables) tables->Need(minibatch);
  };
}

struct Trainee {
  std::vector<float> weights = std::vector<float>(kWeights);
  std::array<int64_t, 1> updates{};
  std::vector<float> gradient = std::vector<float>(kWeights);
  bool odd = false;
  std::optional<TrainerGpu> gpu;
  /// With a GPU: what it trains on. It stands for a copy of the weights in the GPU's memory.
  std::vector<float> copy;
  std::span<float> trained() { return gpu ? copy : weights; }
};

/// A bucket, which has the elements of the gradient from `first` on.
struct Part {
  muster::SumBucket bucket;
  size_t first = 0;
  size_t elements = 0;
};

/// One bucket has 24 bits of fraction. Several have 24, 22 and 20 in turn.
std::vector<Part> AddBuckets(const Options& options, muster::Group* group) {
  std::vector<Part> parts;
  size_t first = 0;
  for (uint64_t i = 0; i < options.buckets; ++i) {
    const size_t next = kWeights * (i + 1) / options.buckets;
    const muster::SumOptions sum{.fraction_bits = static_cast<uint32_t>(24 - 2 * (i % 3)),
                                 .on_device = options.on_device};
    parts.push_back({group->AddBucket("gradients-" + std::to_string(i), next - first, sum), first,
                     next - first});
    first = next;
  }
  return parts;
}

/// The last part first, as a backward pass does.
void Add(Trainee* trainee, muster::GroupStep* step, const std::vector<Part>& parts) {
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    const auto gradient = std::span(trainee->gradient).subspan(part->first, part->elements);
    if (trainee->gpu) {
      step->AddDevice(part->bucket, trainee->gpu->Upload(gradient), part->elements,
                      trainee->gpu->stream());
    } else {
      step->Add(part->bucket, gradient);
    }
  }
}

void Apply(Trainee* trainee, const muster::GroupStep& step, const std::vector<Part>& parts) {
  for (const Part& part : parts) {
    const std::span<const float> sum =
        trainee->gpu ? trainee->gpu->Download(step.DeviceSum(part.bucket), part.elements)
                     : step.Sum(part.bucket);
    Descend(sum, step.records(), trainee->trained().subspan(part.first, part.elements));
  }
  if (trainee->gpu) trainee->weights = trainee->copy;
  ++trainee->updates[0];
  if (trainee->odd && trainee->updates[0] == kOddUpdate) trainee->weights[3] += 0.125F;
}

/// Until it is killed, if the file is there.
void HangWhile(const std::string& file) {
  if (!file.empty() && std::filesystem::exists(file)) muster::SleepFor(std::chrono::hours(1));
}

int Train(const Options& options) {
  muster::Result<muster::Session> session =
      muster::Session::Connect(muster::SessionOptions::FromEnvironment());
  if (!session.ok()) {
    std::fprintf(stderr, "%s\n", session.status().message().c_str());
    return 1;
  }
  Trainee trainee;
  std::vector<float>& weights = trainee.weights;
  std::array<int64_t, 1>& updates = trainee.updates;
  std::vector<float>& gradient = trainee.gradient;
  std::ranges::fill(weights, options.initial);
  if (options.on_device) trainee.gpu.emplace(CollectiveOf(options).driver, kWeights);
  trainee.copy = weights;
  trainee.odd = options.odd_member == NodeName();
  muster::Result<muster::Group> group = session->Group(CollectiveOf(options));
  if (!group.ok()) {
    std::fprintf(stderr, "%s\n", group.status().message().c_str());
    return 1;
  }
  const auto tables =
      options.tables ? std::optional<GroupTables>(std::in_place, *session) : std::nullopt;
  std::optional<muster::DiLoCo> outer;
  std::vector<Part> parts;
  if (const auto outer_options = OuterOptions(options.algorithm)) {
    outer.emplace(*group, *outer_options);
    for (size_t i = 0; i < 4; ++i) {  // pieces of different sizes
      outer->AddWeights("weights-" + std::to_string(i),
                        std::span(weights).subspan(i * 64, i == 3 ? kWeights - 3 * 64 : 64));
    }
  } else {
    group->AddState("weights", std::span<float>(weights));
    parts = AddBuckets(options, &*group);
  }
  group->AddState("updates", std::span<int64_t>(updates));
  HangWhile(options.stay_away_while);
  uint64_t seen = 0;
  while (auto step = outer ? outer->NextStep() : group->NextStep()) {
    if (step->state_copied()) trainee.copy = weights;
    for (muster::Minibatch& minibatch :
         outer ? outer->Minibatches(*step) : step->Minibatches(Preparing(tables))) {
      const double loss = Gradient(trainee.trained(), minibatch.records(), gradient);
      muster::SleepFor(WaitOf(options.slowness));
      HangWhile(options.hang_while);
      if (tables && !tables->Push(minibatch)) step->Fail("a pulled row is not a whole number");
      minibatch.Metric("loss", loss, static_cast<double>(minibatch.records().size()));
      const bool fails = options.fail_every > 0 && ++seen % options.fail_every == 0;
      const uint64_t way = fails ? seen / options.fail_every % 3 : 0;
      if (fails && way == 0) step->Fail("the test fails it");
      if (fails && way == 1) gradient[7] = std::nanf("");
      if (outer && !minibatch.evaluate()) {
        Descend(gradient, minibatch.records().size(), weights);
      } else if (!minibatch.evaluate()) {
        Add(&trainee, &*step, parts);
      }
      if (fails && way == 2) break;
    }
    if (outer) {
      outer->Commit(*step, [&] { ++updates[0]; });
      continue;
    }
    step->Commit([&] { Apply(&trainee, *step, parts); });
  }
  const bool final = group->HasFinalState();
  const int code = session->Finish();
  if (code == 0 && final) Write(options, weights, updates[0]);
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  return Train(Parse(argc, argv));
}
