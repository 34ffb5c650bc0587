#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "muster/export.h"

namespace muster {

/// Optimizers, initializers, schedules and options are plain values. They are thread-compatible;
/// functions that take one copy it.

/// Optimizers run on the servers, per row and column, in float32. One step takes the gradient `g`
/// that a minibatch pushes for the row. docs/optimizers.md has the formulas and their sources.
///
/// Every number must be finite and at least 0. `learning_rate` is multiplied by the schedule's
/// factor. `weight_decay` adds weight_decay * w to the gradient of a pushed row (in AdamW: shrinks
/// the row by learning_rate * weight_decay). `epsilon` is added to the square root in the
/// denominator.

/// w += g. It has no learning rate, and ignores the schedule.
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
/// w -= learning_rate * g / (sqrt(s) + epsilon), where s is the sum of the squares of all gradients
/// of this row and column.
struct Adagrad {
  float learning_rate = 0.01f;
  /// Where s starts: the square of a gradient. With 0, the first step is the learning rate,
  /// whatever the size of the gradient. With a value far above the squares of your gradients, the
  /// first steps are tiny.
  float initial_accumulator = 0;
  float epsilon = 1e-10f;
};
/// Adagrad with one s per row: each step adds the mean of g * g over the columns.
struct RowwiseAdagrad {
  float learning_rate = 0.01f;
  float initial_accumulator = 0;
  float epsilon = 1e-10f;
};
/// Each row has its own count of steps, for the correction of the bias.
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
/// FTRL-Proximal; `lambda1` and `lambda2` are the strengths of its L1 and L2 terms.
struct Ftrl {
  float learning_rate = 0.1f;
  float beta = 1.0f;
  float lambda1 = 0;
  float lambda2 = 0;
};
using Optimizer = std::variant<Sum, Sgd, Momentum, Adagrad, RowwiseAdagrad, Adam, AdamW, Ftrl>;

/// Initial values are pure functions of (job seed, table, key, column). So every worker sees the
/// same values at any time. Every number must be finite.
struct Zero {};
struct Constant {
  float value = 0;
};
/// Uniform in [low, high].
struct Uniform {
  float low = -0.01f;
  float high = 0.01f;
};
struct Normal {
  float mean = 0;
  float stddev = 0.01f;
};
using Initializer = std::variant<Zero, Constant, Uniform, Normal>;

/// A schedule multiplies the learning rate by a factor. The factor depends only on the minibatch's
/// position in the job (Minibatch::step), so a minibatch that runs again has the same rate. A step
/// is one minibatch of any worker. Every schedule begins with a linear warm-up over `warmup_steps`:
/// the factor is (step + 1) / warmup_steps. `period_steps` must be at least 1.
struct ConstantRate {
  uint64_t warmup_steps = 0;
};
/// The factor is multiplied by `decay` every `period_steps`.
struct StepDecay {
  uint64_t period_steps = 1;
  float decay = 1;
  uint64_t warmup_steps = 0;
};
/// The factor falls from 1 to `final_factor` over `period_steps`, along half a cosine, and then
/// stays.
struct CosineDecay {
  uint64_t period_steps = 1;
  float final_factor = 0;
  uint64_t warmup_steps = 0;
};
using Schedule = std::variant<ConstantRate, StepDecay, CosineDecay>;

/// A table of float32 rows with 64-bit keys, of which every value is allowed. A row exists from its
/// first push on; before that, a pull sees its initial values. A value; thread-compatible.
struct SparseTableOptions {
  std::string name{};  // [a-z][a-z0-9_-]*, up to 64 characters
  uint32_t dim = 0;    // floats per row, 1 to 65536
  Optimizer optimizer = Sgd{};
  Initializer initializer = Zero{};
  Schedule schedule = ConstantRate{};
  /// A folder that `muster export` wrote; a relative path begins at the trainer's working folder.
  /// This table starts with the rows of the table of the same name there, which must have the same
  /// width. Empty if there is none. The first worker that registers the table checks the export.
  std::string warm_start = {};
};
/// One float32 tensor of known shape, row-major. All its elements exist from the beginning. A
/// value; thread-compatible.
struct DenseTableOptions {
  std::string name{};             // as above; sparse and dense tables share the names
  std::vector<uint64_t> shape{};  // at least one dimension, each at least 1; up to 2^34 elements
  Optimizer optimizer = Sgd{};
  Initializer initializer = Zero{};
  Schedule schedule = ConstantRate{};
  std::string warm_start = {};  // as above
};

/// A handle of a registered table; it is small and cheap to copy. Use it only with the session that
/// made it. Thread-safe (immutable).
class MUSTER_EXPORT Table {
 public:
  uint32_t id() const { return id_; }
  /// Floats per row of a sparse table, or elements of a dense tensor.
  uint64_t width() const { return width_; }

 private:
  friend class Session;
  Table(uint32_t id, uint64_t width) : id_(id), width_(width) {}
  uint32_t id_;
  uint64_t width_;
};
/// A handle of a registered dense tensor, like Table. Thread-safe (immutable).
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
