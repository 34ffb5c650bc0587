#include "proto/messages/table_spec.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <limits>

namespace muster {
namespace {

std::string Describe(const SumSpec&) {
  return "sum";
}
std::string Describe(const SgdSpec& spec) {
  return fmt::format("sgd(learning_rate={}, weight_decay={})", spec.learning_rate,
                     spec.weight_decay);
}
std::string Describe(const MomentumSpec& spec) {
  return fmt::format("momentum(learning_rate={}, momentum={}, nesterov={}, weight_decay={})",
                     spec.learning_rate, spec.momentum, spec.nesterov, spec.weight_decay);
}
std::string Describe(const AdagradSpec& spec) {
  return fmt::format("adagrad(learning_rate={}, initial_accumulator={}, epsilon={})",
                     spec.learning_rate, spec.initial_accumulator, spec.epsilon);
}
std::string Describe(const RowwiseAdagradSpec& spec) {
  return fmt::format("rowwise_adagrad(learning_rate={}, initial_accumulator={}, epsilon={})",
                     spec.learning_rate, spec.initial_accumulator, spec.epsilon);
}
std::string Describe(const AdamSpec& spec) {
  return fmt::format("adam(learning_rate={}, beta1={}, beta2={}, epsilon={})", spec.learning_rate,
                     spec.beta1, spec.beta2, spec.epsilon);
}
std::string Describe(const AdamWSpec& spec) {
  return fmt::format("adamw(learning_rate={}, beta1={}, beta2={}, epsilon={}, weight_decay={})",
                     spec.learning_rate, spec.beta1, spec.beta2, spec.epsilon, spec.weight_decay);
}
std::string Describe(const FtrlSpec& spec) {
  return fmt::format("ftrl(learning_rate={}, beta={}, lambda1={}, lambda2={})", spec.learning_rate,
                     spec.beta, spec.lambda1, spec.lambda2);
}

std::string Describe(const InitializerSpec& spec) {
  switch (spec.kind) {
    case InitializerSpec::Kind::kZero:
      return "zero";
    case InitializerSpec::Kind::kConstant:
      return fmt::format("constant({})", spec.a);
    case InitializerSpec::Kind::kUniform:
      return fmt::format("uniform({}, {})", spec.a, spec.b);
    case InitializerSpec::Kind::kNormal:
      return fmt::format("normal(mean={}, deviation={})", spec.a, spec.b);
  }
  return fmt::format("unknown initializer {}", static_cast<int>(spec.kind));
}

std::string Describe(const ScheduleSpec& spec) {
  const std::string warmup = fmt::format("warmup_steps={}", spec.warmup_steps);
  switch (spec.kind) {
    case ScheduleSpec::Kind::kConstant:
      return fmt::format("constant({})", warmup);
    case ScheduleSpec::Kind::kStep:
      return fmt::format("step({}, period_steps={}, decay={})", warmup, spec.period_steps,
                         spec.decay);
    case ScheduleSpec::Kind::kCosine:
      return fmt::format("cosine({}, period_steps={}, final_factor={})", warmup, spec.period_steps,
                         spec.final_factor);
  }
  return fmt::format("unknown schedule {}", static_cast<int>(spec.kind));
}

}  // namespace

std::string ToString(const TableSpec& table) {
  const std::string shape =
      table.shape.empty() ? "sparse" : fmt::format("dense [{}]", fmt::join(table.shape, ", "));
  const std::string optimizer =
      std::visit([](const auto& spec) { return Describe(spec); }, table.optimizer);
  std::string text = fmt::format("'{}' id={} {} dim={} optimizer={} initializer={} schedule={}",
                                 table.name, table.id.value(), shape, table.dim, optimizer,
                                 Describe(table.initializer), Describe(table.schedule));
  if (!table.warm_start_directory.empty() || !table.warm_start_hash.empty()) {
    text += fmt::format(" warm_start='{}'", table.warm_start_directory);
    if (!table.warm_start_hash.empty()) text += fmt::format(" (content {})", table.warm_start_hash);
  }
  return text;
}

uint64_t DenseBlockCount(const TableSpec& table) {
  if (table.shape.empty() || table.dim == 0) return 0;
  constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();
  uint64_t elements = 1;
  for (const uint64_t extent : table.shape) {
    if (extent == 0) return 0;
    elements = elements > kMax / extent ? kMax : elements * extent;  // saturates
  }
  return elements / table.dim + (elements % table.dim != 0 ? 1 : 0);
}

}  // namespace muster
