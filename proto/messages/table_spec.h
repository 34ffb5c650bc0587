#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "base/words/limits.h"
#include "base/words/types.h"

/// What a table is: width, optimizer, initializer, schedule. Plain values that cross every wire;
/// ps/engine gives them meaning, worker_sdk mirrors them in its public header.
namespace muster {

/// w -= rate * g is written below as "step"; every optimizer multiplies `learning_rate` by the
/// table's schedule. Sum adds the pushed value itself (w += g) and ignores schedules.
struct SumSpec {
  static void Fields(auto& /*f*/, auto& /*s*/) {}
  friend bool operator==(const SumSpec&, const SumSpec&) = default;
};
struct SgdSpec {
  float learning_rate = 0.01f;
  float weight_decay = 0;
  static void Fields(auto& f, auto& s) {
    f(2, "learning_rate", s.learning_rate);
    f(3, "weight_decay", s.weight_decay);
  }
  friend bool operator==(const SgdSpec&, const SgdSpec&) = default;
};
struct MomentumSpec {
  float learning_rate = 0.01f;
  float momentum = 0.9f;
  bool nesterov = false;
  float weight_decay = 0;
  static void Fields(auto& f, auto& s) {
    f(2, "learning_rate", s.learning_rate);
    f(3, "weight_decay", s.weight_decay);
    f(4, "momentum", s.momentum);
    f(5, "nesterov", s.nesterov);
  }
  friend bool operator==(const MomentumSpec&, const MomentumSpec&) = default;
};
struct AdagradSpec {
  float learning_rate = 0.01f;
  float initial_accumulator = 0;
  float epsilon = 1e-10f;
  static void Fields(auto& f, auto& s) {
    f(2, "learning_rate", s.learning_rate);
    f(6, "initial_accumulator", s.initial_accumulator);
    f(7, "epsilon", s.epsilon);
  }
  friend bool operator==(const AdagradSpec&, const AdagradSpec&) = default;
};
/// One accumulator per row: the mean of the squared gradient.
struct RowwiseAdagradSpec {
  float learning_rate = 0.01f;
  float initial_accumulator = 0;
  float epsilon = 1e-10f;
  static void Fields(auto& f, auto& s) {
    f(2, "learning_rate", s.learning_rate);
    f(6, "initial_accumulator", s.initial_accumulator);
    f(7, "epsilon", s.epsilon);
  }
  friend bool operator==(const RowwiseAdagradSpec&, const RowwiseAdagradSpec&) = default;
};
struct AdamSpec {
  float learning_rate = 0.001f;
  float beta1 = 0.9f;
  float beta2 = 0.999f;
  float epsilon = 1e-8f;
  static void Fields(auto& f, auto& s) {
    f(2, "learning_rate", s.learning_rate);
    f(7, "epsilon", s.epsilon);
    f(8, "beta1", s.beta1);
    f(9, "beta2", s.beta2);
  }
  friend bool operator==(const AdamSpec&, const AdamSpec&) = default;
};
/// Adam with decoupled weight decay.
struct AdamWSpec {
  float learning_rate = 0.001f;
  float beta1 = 0.9f;
  float beta2 = 0.999f;
  float epsilon = 1e-8f;
  float weight_decay = 0.01f;
  static void Fields(auto& f, auto& s) {
    f(2, "learning_rate", s.learning_rate);
    f(3, "weight_decay", s.weight_decay);
    f(7, "epsilon", s.epsilon);
    f(8, "beta1", s.beta1);
    f(9, "beta2", s.beta2);
  }
  friend bool operator==(const AdamWSpec&, const AdamWSpec&) = default;
};
/// FTRL-Proximal, per coordinate.
struct FtrlSpec {
  float learning_rate = 0.1f;  // alpha
  float beta = 1.0f;
  float lambda1 = 0;
  float lambda2 = 0;
  static void Fields(auto& f, auto& s) {
    f(2, "learning_rate", s.learning_rate);
    f(8, "beta1", s.beta);
    f(10, "lambda1", s.lambda1);
    f(11, "lambda2", s.lambda2);
  }
  friend bool operator==(const FtrlSpec&, const FtrlSpec&) = default;
};
using OptimizerSpec = std::variant<SumSpec, SgdSpec, MomentumSpec, AdagradSpec, RowwiseAdagradSpec,
                                   AdamSpec, AdamWSpec, FtrlSpec>;

/// Initial values: pure functions of (job seed, table, key, column).
struct InitializerSpec {
  enum class Kind : uint8_t { kZero = 0, kConstant = 1, kUniform = 2, kNormal = 3 };
  Kind kind = Kind::kZero;
  /// kConstant: the value. kUniform: lower bound. kNormal: mean.
  float a = 0;
  /// kUniform: upper bound. kNormal: standard deviation.
  float b = 0;
  static void Fields(auto& f, auto& s) {
    f(1, "kind", s.kind, {.most = 3});
    f(2, "a", s.a);
    f(3, "b", s.b);
  }
  friend bool operator==(const InitializerSpec&, const InitializerSpec&) = default;
};

/// The factor on the learning rate as a function of the job-wide position of a minibatch ("step"),
/// so that a re-run minibatch has the same rate. Starts with a linear warm-up over `warmup_steps`,
/// then follows `kind`.
struct ScheduleSpec {
  enum class Kind : uint8_t { kConstant = 0, kStep = 1, kCosine = 2 };
  Kind kind = Kind::kConstant;
  uint64_t warmup_steps = 0;
  /// kStep: every `period_steps` the factor is multiplied by `decay`. kCosine: steps until
  /// `final_factor`.
  uint64_t period_steps = 0;
  float decay = 1;
  float final_factor = 0;
  static void Fields(auto& f, auto& s) {
    f(1, "kind", s.kind, {.most = 2});
    f(2, "warmup_steps", s.warmup_steps);
    f(3, "period_steps", s.period_steps);
    f(4, "decay", s.decay);
    f(5, "final_factor", s.final_factor);
  }
  friend bool operator==(const ScheduleSpec&, const ScheduleSpec&) = default;
};

/// A table as registered with the master. Dense tensors are stored as rows of `dim` floats
/// ("blocks"), key = block.
struct TableSpec {
  TableId id;  // given by the master; 0 before
  std::string name;
  /// Floats per row; for a dense table the block width.
  uint32_t dim = 0;
  /// Empty for a sparse table; the tensor's shape for a dense one.
  std::vector<uint64_t> shape;
  OptimizerSpec optimizer;
  InitializerSpec initializer;
  ScheduleSpec schedule;
  /// A folder written by `muster export` whose rows this table starts from; empty = none. The hash
  /// pins its content.
  std::string warm_start_directory;
  std::string warm_start_hash;
  static void Fields(auto& f, auto& s) {
    f(1, "id", s.id);
    f(2, "name", s.name, {.most = most::kNameBytes});
    f(3, "dim", s.dim);
    f(4, "shape", s.shape, {.most = most::kDimensions});
    f(5, "optimizer", s.optimizer);
    f(6, "initializer", s.initializer);
    f(7, "schedule", s.schedule);
    f(8, "warm_start_directory", s.warm_start_directory);
    f(9, "warm_start_hash", s.warm_start_hash, {.most = most::kNameBytes});
  }
  friend bool operator==(const TableSpec&, const TableSpec&) = default;
};

/// One line that shows every field, as error messages print it.
std::string ToString(const TableSpec& table);

/// Blocks (rows) of a dense table: ceil(product of shape / dim). 0 for a sparse one.
uint64_t DenseBlockCount(const TableSpec& table);

}  // namespace muster
