#include "worker_sdk/session/table_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <initializer_list>
#include <type_traits>

#include "base/status.h"

namespace muster::sdk {
namespace {

constexpr uint32_t kDimMax = 65536;
constexpr uint64_t kElementsMax = uint64_t{1} << 34;

struct ToOptimizer {
  OptimizerSpec operator()(const Sum&) const { return SumSpec{}; }
  OptimizerSpec operator()(const Sgd& o) const { return SgdSpec{o.learning_rate, o.weight_decay}; }
  OptimizerSpec operator()(const Momentum& o) const {
    return MomentumSpec{o.learning_rate, o.momentum, o.nesterov, o.weight_decay};
  }
  OptimizerSpec operator()(const Adagrad& o) const {
    return AdagradSpec{o.learning_rate, o.initial_accumulator, o.epsilon};
  }
  OptimizerSpec operator()(const RowwiseAdagrad& o) const {
    return RowwiseAdagradSpec{o.learning_rate, o.initial_accumulator, o.epsilon};
  }
  OptimizerSpec operator()(const Adam& o) const {
    return AdamSpec{o.learning_rate, o.beta1, o.beta2, o.epsilon};
  }
  OptimizerSpec operator()(const AdamW& o) const {
    return AdamWSpec{o.learning_rate, o.beta1, o.beta2, o.epsilon, o.weight_decay};
  }
  OptimizerSpec operator()(const Ftrl& o) const {
    return FtrlSpec{o.learning_rate, o.beta, o.lambda1, o.lambda2};
  }
};

/// All numbers of an optimizer, to check that they are finite.
std::vector<float> NumbersOf(const OptimizerSpec& optimizer) {
  return std::visit(
      [](const auto& o) -> std::vector<float> {
        using T = std::decay_t<decltype(o)>;
        std::vector<float> numbers;
        if constexpr (!std::is_same_v<T, SumSpec>) numbers.push_back(o.learning_rate);
        if constexpr (requires { o.weight_decay; }) numbers.push_back(o.weight_decay);
        if constexpr (requires { o.momentum; }) numbers.push_back(o.momentum);
        if constexpr (requires { o.initial_accumulator; }) {
          numbers.push_back(o.initial_accumulator);
        }
        if constexpr (requires { o.epsilon; }) numbers.push_back(o.epsilon);
        if constexpr (requires { o.beta1; }) numbers.insert(numbers.end(), {o.beta1, o.beta2});
        if constexpr (requires { o.lambda1; }) {
          numbers.insert(numbers.end(), {o.beta, o.lambda1, o.lambda2});
        }
        return numbers;
      },
      optimizer);
}

InitializerSpec ToSpec(const Initializer& initializer) {
  using Kind = InitializerSpec::Kind;
  if (const auto* c = std::get_if<Constant>(&initializer)) return {Kind::kConstant, c->value, 0};
  if (const auto* u = std::get_if<Uniform>(&initializer)) return {Kind::kUniform, u->low, u->high};
  if (const auto* n = std::get_if<Normal>(&initializer)) return {Kind::kNormal, n->mean, n->stddev};
  return {};
}

ScheduleSpec ToSpec(const Schedule& schedule) {
  ScheduleSpec spec;
  if (const auto* constant = std::get_if<ConstantRate>(&schedule)) {
    spec.warmup_steps = constant->warmup_steps;
  } else if (const auto* step = std::get_if<StepDecay>(&schedule)) {
    spec = {ScheduleSpec::Kind::kStep, step->warmup_steps, step->period_steps, step->decay, 0};
  } else if (const auto* cosine = std::get_if<CosineDecay>(&schedule)) {
    spec = {ScheduleSpec::Kind::kCosine, cosine->warmup_steps, cosine->period_steps, 1,
            cosine->final_factor};
  }
  return spec;
}

absl::Status Invalid(std::string_view table, std::string_view what) {
  return absl::InvalidArgumentError(fmt::format("table \"{}\": {}", table, what));
}

absl::Status CheckName(const std::string& name) {
  auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  };
  bool good = !name.empty() && name.size() <= 64 && name[0] >= 'a' && name[0] <= 'z' &&
              std::all_of(name.begin(), name.end(), allowed);
  if (good) return absl::OkStatus();
  return Invalid(name,
                 "a name is [a-z][a-z0-9_-]* of up to 64 characters; choose one of that form");
}

/// Fills in and checks the fields that sparse and dense tables share.
template <typename Options>
absl::Status Common(const Options& options, TableSpec* spec) {
  spec->name = options.name;
  MUSTER_RETURN_IF_ERROR(CheckName(spec->name));
  spec->optimizer = std::visit(ToOptimizer{}, options.optimizer);
  spec->initializer = ToSpec(options.initializer);
  spec->schedule = ToSpec(options.schedule);
  for (float number : NumbersOf(spec->optimizer)) {
    if (!std::isfinite(number) || number < 0) {
      return Invalid(spec->name,
                     fmt::format("an option of the optimizer is {}; it must be 0 or more", number));
    }
  }
  if (!std::isfinite(spec->initializer.a) || !std::isfinite(spec->initializer.b)) {
    return Invalid(spec->name, "the initializer is not of finite numbers");
  }
  if (spec->schedule.kind != ScheduleSpec::Kind::kConstant && spec->schedule.period_steps == 0) {
    return Invalid(spec->name, "the schedule has period_steps 0; it must be at least 1");
  }
  if (!std::isfinite(spec->schedule.decay) || !std::isfinite(spec->schedule.final_factor)) {
    return Invalid(spec->name, "the schedule's factor is not a finite number");
  }
  if (!options.warm_start.empty()) {
    std::error_code error;
    spec->warm_start_directory = std::filesystem::absolute(options.warm_start, error).string();
    if (error) {
      return Invalid(spec->name,
                     fmt::format("warm_start \"{}\": {}", options.warm_start, error.message()));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TableSpec> SpecOf(const SparseTableOptions& options) {
  TableSpec spec;
  MUSTER_RETURN_IF_ERROR(Common(options, &spec));
  if (options.dim < 1 || options.dim > kDimMax) {
    return Invalid(spec.name,
                   fmt::format("dim is {}; it must be from 1 to {}", options.dim, kDimMax));
  }
  spec.dim = options.dim;
  return spec;
}

absl::StatusOr<TableSpec> SpecOf(const DenseTableOptions& options) {
  TableSpec spec;
  MUSTER_RETURN_IF_ERROR(Common(options, &spec));
  uint64_t elements = 1;
  for (uint64_t extent : options.shape) {
    if (extent == 0 || extent > kElementsMax / elements) {
      return Invalid(spec.name,
                     fmt::format("its shape has {} elements or more in a dimension of {}; "
                                 "every dimension is at least 1, all together up to {}",
                                 elements, extent, kElementsMax));
    }
    elements *= extent;
  }
  if (options.shape.empty()) return Invalid(spec.name, "a dense table needs a shape");
  spec.shape = options.shape;
  spec.dim = static_cast<uint32_t>(std::min<uint64_t>(elements, kDenseBlockMax));
  return spec;
}

uint64_t ElementCount(const TableSpec& table) {
  uint64_t elements = 1;
  for (uint64_t extent : table.shape) elements *= extent;
  return elements;
}

}  // namespace muster::sdk
