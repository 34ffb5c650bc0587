#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "muster/export.h"

namespace muster {

/// Optimizers, initializers, schedules and options are plain values: thread-compatible, copied by
/// what takes them.

/// Optimizers run on the servers. Formulas and sources: docs/optimizers.md.
/// Sum adds what is pushed (w += g); schedules do not touch it.
struct Sum {};
struct Sgd {
  float learning_rate = 0.01f;
  float weight_decay = 0;
};
struct Momentum {
  float learning_rate = 0.01f;
  float momentum = 0.9f;
  bool nesterov = false;
  float weight_decay = 0;
};
struct Adagrad {
  float learning_rate = 0.01f;
  float initial_accumulator = 0;
  float epsilon = 1e-10f;
};
/// One accumulator a row: the mean of the squared gradient.
struct RowwiseAdagrad {
  float learning_rate = 0.01f;
  float initial_accumulator = 0;
  float epsilon = 1e-10f;
};
struct Adam {
  float learning_rate = 0.001f;
  float beta1 = 0.9f;
  float beta2 = 0.999f;
  float epsilon = 1e-8f;
};
struct AdamW {
  float learning_rate = 0.001f;
  float beta1 = 0.9f;
  float beta2 = 0.999f;
  float epsilon = 1e-8f;
  float weight_decay = 0.01f;
};
struct Ftrl {
  float learning_rate = 0.1f;
  float beta = 1.0f;
  float lambda1 = 0;
  float lambda2 = 0;
};
using Optimizer = std::variant<Sum, Sgd, Momentum, Adagrad, RowwiseAdagrad, Adam, AdamW, Ftrl>;

/// Initial values are pure functions of (job seed, table, key, column): the same whoever asks,
/// whenever.
struct Zero {};
struct Constant {
  float value = 0;
};
struct Uniform {
  float low = -0.01f;
  float high = 0.01f;
};
struct Normal {
  float mean = 0;
  float stddev = 0.01f;
};
using Initializer = std::variant<Zero, Constant, Uniform, Normal>;

/// A factor on the learning rate, a function of the minibatch's position in the job: a re-run has
/// the same rate. A linear warm-up over `warmup_steps` comes first with each of them.
struct ConstantRate {
  uint64_t warmup_steps = 0;
};
/// Multiplied by `decay` every `period_steps`.
struct StepDecay {
  uint64_t period_steps = 1;
  float decay = 1;
  uint64_t warmup_steps = 0;
};
/// Half a cosine from 1 to `final_factor` over `period_steps`.
struct CosineDecay {
  uint64_t period_steps = 1;
  float final_factor = 0;
  uint64_t warmup_steps = 0;
};
using Schedule = std::variant<ConstantRate, StepDecay, CosineDecay>;

/// Rows by 64-bit key; a row exists from its first push on. A value; thread-compatible.
struct SparseTableOptions {
  std::string name;  // [a-z][a-z0-9_-]*, up to 64 characters
  uint32_t dim = 0;  // floats a row, 1 to 65536
  Optimizer optimizer = Sgd{};
  Initializer initializer = Zero{};
  Schedule schedule = ConstantRate{};
  /// A folder written by `muster export`; rows of the table of this name in it are where this table
  /// starts. Empty: none. It is checked when the table is registered, by the first worker alone.
  std::string warm_start = {};
};
/// One tensor of known shape, float32, row-major. A value; thread-compatible.
struct DenseTableOptions {
  std::string name;
  std::vector<uint64_t> shape;
  Optimizer optimizer = Sgd{};
  Initializer initializer = Zero{};
  Schedule schedule = ConstantRate{};
  std::string warm_start = {};  // as above
};

/// A registered table: a small handle, copied freely. Belongs to the session that made it.
/// Thread-safe (immutable).
class MUSTER_EXPORT Table {
 public:
  uint32_t id() const { return id_; }
  /// Floats a row (sparse), or elements of the tensor (dense).
  uint64_t width() const { return width_; }

 private:
  friend class Session;
  Table(uint32_t id, uint64_t width) : id_(id), width_(width) {}
  uint32_t id_;
  uint64_t width_;
};
/// As Table, for dense tensors: a small handle of its session. Thread-safe (immutable).
class MUSTER_EXPORT DenseTensor {
 public:
  uint32_t id() const { return id_; }
  uint64_t size() const { return size_; }

 private:
  friend class Session;
  DenseTensor(uint32_t id, uint64_t size) : id_(id), size_(size) {}
  uint32_t id_;
  uint64_t size_;
};

}  // namespace muster
