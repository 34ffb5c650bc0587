// A member of a synchronous group that learns to guess the next character of a text. Start it with
// `muster run`, which sets the environment that the session reads.

#include <muster/muster.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <numbers>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "examples/text/adam.h"
#include "examples/text/arguments.h"
#include "examples/text/characters.h"
#include "examples/text/model_file.h"
#include "examples/text/transformer.h"

namespace text {
namespace {

constexpr const char* kUsage =
    R"(Usage: text_trainer [--name value] ...

A member of a synchronous group that learns to guess the next character of a text. `muster run`
starts it, with the arguments of the job file.

  --context N  characters of a record but one (64)
  --width N    length of the vector of a character (96)
  --heads N    heads of the attention; they divide the width (4)
  --blocks N   blocks of the transformer (2)
  --rate R     learning rate at its highest (0.003)
  --warmup N   updates until it is reached: steps of the group, or with local-sgd and diloco,
               minibatches of the job (100)
  --algorithm A  sum: the group adds the gradients of every minibatch (default). local-sgd,
               diloco: members train alone in a step, and then bring their weights together
  --fragments N  with diloco: a step synchronises one of so many parts of the weights (1)
  --members N    with diloco: changes are divided by this number; 0: by the members that trained (0)
  --seed N     of the initial weights (1)
  --output F   folder for the loss of each step, and for the model after each evaluation (.)

Example, in a job file:
  command: [./text_trainer, --width, "64", --seed, "7"]
)";

struct Options {
  Shape shape;
  AdamOptions adam;
  /// Absent: the group adds gradients.
  std::optional<muster::DiLoCoOptions> outer;
  uint64_t seed = 1;
  std::string output;
};

/// What --algorithm and --fragments say; `error` if they are wrong.
std::optional<muster::DiLoCoOptions> ParseOuter(Arguments& arguments, const Shape& shape,
                                                std::optional<std::string>& error) {
  const std::string algorithm = arguments.Text("algorithm", "sum");
  muster::DiLoCoOptions outer;
  const uint64_t fragments = arguments.Number("fragments", 1, 1, LayerCount(shape));
  outer.fragments = static_cast<uint32_t>(fragments);
  outer.members = static_cast<uint32_t>(arguments.Number("members", 0, 0, 1024));
  if (algorithm == "local-sgd") outer.outer = muster::OuterSgd{};
  if (algorithm != "sum" && algorithm != "local-sgd" && algorithm != "diloco") {
    error = "--algorithm is '" + algorithm + "', not sum, local-sgd or diloco";
  } else if (algorithm != "diloco" && (fragments != 1 || outer.members != 0)) {
    error = "--fragments and --members are for --algorithm diloco";
  }
  return algorithm == "sum" ? std::nullopt : std::optional(outer);
}

/// Also the first error.
Options Parse(Arguments& arguments, std::optional<std::string>& error) {
  Options options;
  Shape& shape = options.shape;
  shape.characters = kCharacters;
  shape.context = arguments.Number("context", shape.context, 1, 4096);
  shape.width = arguments.Number("width", shape.width, 1, 4096);
  shape.heads = arguments.Number("heads", shape.heads, 1, 4096);
  shape.blocks = arguments.Number("blocks", shape.blocks, 1, 64);
  options.adam.learning_rate = arguments.Real("rate", options.adam.learning_rate, 1e-6F, 1);
  options.adam.warmup = arguments.Number("warmup", options.adam.warmup, 1, 1'000'000);
  options.seed = arguments.Number("seed", options.seed, 0, UINT64_MAX);
  options.output = arguments.Text("output", ".");
  std::optional<std::string> wrong_outer;
  options.outer = ParseOuter(arguments, shape, wrong_outer);
  error = arguments.Error();
  if (!error) error = ShapeError(shape);
  if (!error) error = wrong_outer;
  return options;
}

/// One layer of the network. All members have the same.
struct Layer {
  std::vector<float> weights, first, second;  // first and second: the moments of Adam
  std::optional<muster::SumBucket> bucket;    // for the gradient, if the group adds gradients
  std::vector<float> gradient;                // of the current minibatch, if it does not
};

/// The state of this member, and what it does in a step. Used by one thread.
class Member {
 public:
  Member(const Options& options, muster::Group& group, const std::string& name)
      : options_(options),
        group_(group),
        model_(options.shape),
        name_(name),
        loss_(group.AddBucket("loss", 1)),
        losses_(Path("loss", "csv"), std::ios::app) {
    group.AddState("updates", std::span<int64_t>(updates_));
    if (options.outer) outer_.emplace(group, *options.outer);
    for (size_t i = 0; i < LayerCount(options.shape); ++i) {
      const std::string layer = "layer-" + std::to_string(i);
      std::vector<float> weights = InitialLayer(options.shape, i, options.seed);
      const std::vector<float> zeros(weights.size());
      // Moving the vectors later leaves their elements where they are.
      layers_.push_back({std::move(weights), zeros, zeros, {}, {}});
      if (outer_) {
        // The moments are this member's own. The group shares the weights and their momentum.
        outer_->AddWeights(layer, std::span<float>(layers_[i].weights));
        continue;
      }
      layers_[i].bucket = group.AddBucket(layer, zeros.size());
      group.AddState(layer + "-weights", std::span<float>(layers_[i].weights));
      group.AddState(layer + "-first", std::span<float>(layers_[i].first));
      group.AddState(layer + "-second", std::span<float>(layers_[i].second));
    }
  }

  std::optional<muster::GroupStep> NextStep() {
    return outer_ ? outer_->NextStep() : group_.NextStep();
  }

  void Run(muster::GroupStep& step) {
    for (muster::Minibatch& batch : outer_ ? outer_->Minibatches(step) : step.Minibatches()) {
      RunMinibatch(step, batch);
    }
    float loss = 0;
    const auto apply = [&] { loss = Apply(step); };
    const bool happened = outer_ ? outer_->Commit(step, apply) : step.Commit(apply);
    if (!happened) return;
    if (step.evaluate()) {
      // Here, the state is whole: it is that after so many updates, also in a member that joined.
      Save();
      return;
    }
    // A member that joined did not see the first steps; the files of all members together do.
    losses_ << updates_[0] << "," << step.epoch() << "," << loss << std::endl;
  }

  /// Replaces the model that was written last.
  void Save() {
    const std::string path = Path("model", "bin");
    const auto updates = static_cast<uint64_t>(updates_[0]);
    const std::string bytes = FormatModel(options_.shape, updates, Weights());
    std::ofstream file(path + ".new", std::ios::binary);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    file.close();
    std::error_code error;
    if (file.good()) std::filesystem::rename(path + ".new", path, error);
    unsaved_ = !file.good() || error;
  }

  /// True if the disk refused a model.
  bool unsaved() const { return unsaved_; }

 private:
  std::string Path(const std::string& what, const std::string& ending) const {
    return options_.output + "/" + what + "-" + name_ + "." + ending;
  }

  Layers<float> Weights() const {
    Layers<float> weights;
    for (const Layer& layer : layers_) weights.emplace_back(layer.weights);
    return weights;
  }

  void RunMinibatch(muster::GroupStep& step, muster::Minibatch& batch) {
    windows_.clear();
    for (size_t i = 0; i < batch.records().size(); ++i) {
      if (const std::optional<std::string> why =
              AppendNumbers(batch.records()[i], options_.shape.context + 1, windows_)) {
        batch.Reject(i, *why);
      }
    }
    if (windows_.empty()) return;  // every record was rejected
    const Layers<float> weights = Weights();
    const auto records = static_cast<double>(windows_.size() / (options_.shape.context + 1));
    const double bits = model_.Forward(weights, windows_) / std::numbers::ln2;
    batch.Metric("loss", bits / records, records);  // in bits per character
    if (batch.evaluate()) return;
    step.Add(loss_, std::array{static_cast<float>(bits)});
    if (outer_) return TrainAlone(weights, batch.step() + 1);
    // The gradients of the last layer come first: the group adds them while the other layers are
    // still computed.
    model_.Backward(weights, windows_, [&](size_t layer, std::span<const float> gradient) {
      step.Add(*layers_[layer].bucket, gradient);
    });
  }

  /// An update of this member's weights by the current minibatch. `at`: its number in the job,
  /// which decides the learning rate, so a member that begins anew does not warm up.
  void TrainAlone(const Layers<float>& weights, uint64_t at) {
    // The weights must not change before the last gradient is there.
    model_.Backward(weights, windows_, [&](size_t layer, std::span<const float> gradient) {
      layers_[layer].gradient.assign(gradient.begin(), gradient.end());
    });
    ++own_updates_;
    const float rate = RateAt(options_.adam, static_cast<int64_t>(at));
    const uint64_t records = windows_.size() / (options_.shape.context + 1);
    for (Layer& layer : layers_) {
      Update(options_.adam, rate, own_updates_, layer.gradient, records,
             {layer.weights, layer.first, layer.second});
    }
  }

  /// Changes the state by the sums of the step. Returns its mean loss, in bits per character.
  float Apply(muster::GroupStep& step) {
    ++updates_[0];
    const float rate = RateAt(options_.adam, updates_[0]);
    for (Layer& layer : layers_) {
      if (!layer.bucket) continue;  // the outer optimizer has changed the weights
      Update(options_.adam, rate, updates_[0], step.Sum(*layer.bucket), step.records(),
             {layer.weights, layer.first, layer.second});
    }
    return step.Sum(loss_)[0] / static_cast<float>(step.records());
  }

  const Options options_;
  muster::Group& group_;
  std::optional<muster::DiLoCo> outer_;
  Transformer<float> model_;
  const std::string name_;
  muster::SumBucket loss_;
  std::ofstream losses_;  // a line per step: its number, the epoch, the loss
  std::array<int64_t, 1> updates_{};
  int64_t own_updates_ = 0;  // of this process's moments, if it trains alone
  std::vector<Layer> layers_;
  std::vector<uint8_t> windows_;
  bool unsaved_ = false;
};

int Train(const Options& options) {
  const auto connect = muster::SessionOptions::FromEnvironment();
  auto session = muster::Session::Connect(connect).value();
  auto group = session.Group().value();
  Member member(options, group, connect.worker_name);
  while (auto step = member.NextStep()) member.Run(*step);
  // A member that was still copying the state when the job ended has an older model.
  if (group.HasFinalState()) member.Save();
  const int code = session.Finish();
  if (code == 0 && member.unsaved()) {
    std::fprintf(stderr, "text_trainer: the model cannot be written to %s\n",
                 options.output.c_str());
    return 1;
  }
  return code;
}

}  // namespace
}  // namespace text

int main(int argc, char** argv) {
  text::Arguments arguments({argv + 1, static_cast<size_t>(argc - 1)});
  if (arguments.help()) {
    std::fputs(text::kUsage, stdout);
    return 0;
  }
  std::optional<std::string> error;
  const text::Options options = text::Parse(arguments, error);
  if (!error && !std::filesystem::is_directory(options.output)) {
    error = "--output is '" + options.output + "', which is not a folder";
  }
  if (error) {
    std::fprintf(stderr, "text_trainer: %s; see text_trainer --help\n", error->c_str());
    return 2;
  }
  return text::Train(options);
}
