// Highway compiles this file once for each instruction set, and chooses the best one for the
// machine at run time. Multiplications and additions are never fused, and a sum over a row always
// uses four lanes. So every instruction set gives the same bits.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ps/engine/optimizer_kernels.cc"
#include "hwy/detect_targets.h"
// AVX-512 does not help loops that wait for memory.
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3 | HWY_AVX3_DL)
#include "hwy/foreach_target.h"
// By Highway's rule, its headers must come after foreach_target.h.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <span>

#include "hwy/highway.h"
#include "ps/engine/optimizer.h"

HWY_BEFORE_NAMESPACE();
namespace muster::ps {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Calls step(tag, column) so that every column in [0, dim) is covered: first by whole vectors,
/// then one column at a time.
template <typename Step>
HWY_INLINE void ForColumns(size_t dim, Step&& step) {
  const hn::ScalableTag<float> vector;
  const hn::CappedTag<float, 1> scalar;
  size_t i = 0;
  for (; i + hn::Lanes(vector) <= dim; i += hn::Lanes(vector)) step(vector, i);
  for (; i < dim; ++i) step(scalar, i);
}

struct Row {
  float* w;
  const float* g;
  size_t dim;
  float* slot(size_t number) const { return w + (number + 1) * dim; }
};

void Step(const SumSpec&, float, const Row& r) {
  ForColumns(r.dim, [&](auto d, size_t i) HWY_ATTR {
    hn::StoreU(hn::Add(hn::LoadU(d, r.w + i), hn::LoadU(d, r.g + i)), d, r.w + i);
  });
}

void Step(const SgdSpec& spec, float factor, const Row& r) {
  const float rate = spec.learning_rate * factor;
  ForColumns(r.dim, [&](auto d, size_t i) HWY_ATTR {
    const auto w = hn::LoadU(d, r.w + i);
    const auto g = hn::Add(hn::LoadU(d, r.g + i), hn::Mul(hn::Set(d, spec.weight_decay), w));
    hn::StoreU(hn::Sub(w, hn::Mul(hn::Set(d, rate), g)), d, r.w + i);
  });
}

void Step(const MomentumSpec& spec, float factor, const Row& r) {
  const float rate = spec.learning_rate * factor;
  float* velocity = r.slot(0);
  ForColumns(r.dim, [&](auto d, size_t i) HWY_ATTR {
    const auto momentum = hn::Set(d, spec.momentum);
    const auto w = hn::LoadU(d, r.w + i);
    const auto g = hn::Add(hn::LoadU(d, r.g + i), hn::Mul(hn::Set(d, spec.weight_decay), w));
    const auto v = hn::Add(hn::Mul(momentum, hn::LoadU(d, velocity + i)), g);
    hn::StoreU(v, d, velocity + i);
    const auto direction = spec.nesterov ? hn::Add(g, hn::Mul(momentum, v)) : v;
    hn::StoreU(hn::Sub(w, hn::Mul(hn::Set(d, rate), direction)), d, r.w + i);
  });
}

void Step(const AdagradSpec& spec, float factor, const Row& r) {
  const float rate = spec.learning_rate * factor;
  float* sum = r.slot(0);
  ForColumns(r.dim, [&](auto d, size_t i) HWY_ATTR {
    const auto g = hn::LoadU(d, r.g + i);
    const auto s = hn::Add(hn::LoadU(d, sum + i), hn::Mul(g, g));
    hn::StoreU(s, d, sum + i);
    const auto scale = hn::Add(hn::Sqrt(s), hn::Set(d, spec.epsilon));
    const auto change = hn::Div(hn::Mul(hn::Set(d, rate), g), scale);
    hn::StoreU(hn::Sub(hn::LoadU(d, r.w + i), change), d, r.w + i);
  });
}

/// The sum of squares. Every instruction set adds in the same order: over four lanes, and then the
/// rest.
float SumOfSquares(const float* g, size_t dim) {
  const hn::CappedTag<float, 4> d;
  const size_t lanes = hn::Lanes(d);
  auto sums = hn::Zero(d);
  size_t i = 0;
  if (lanes == 4) {
    for (; i + lanes <= dim; i += lanes) {
      const auto v = hn::LoadU(d, g + i);
      sums = hn::Add(sums, hn::Mul(v, v));
    }
  }
  float lane[4] = {0, 0, 0, 0};
  hn::StoreU(sums, d, lane);
  float total = (lane[0] + lane[1]) + (lane[2] + lane[3]);
  for (; i < dim; ++i) total += g[i] * g[i];
  return total;
}

void Step(const RowwiseAdagradSpec& spec, float factor, const Row& r) {
  float* sum = r.slot(0);
  *sum += SumOfSquares(r.g, r.dim) / static_cast<float>(r.dim);
  const float rate = spec.learning_rate * factor / (std::sqrt(*sum) + spec.epsilon);
  ForColumns(r.dim, [&](auto d, size_t i) HWY_ATTR {
    const auto change = hn::Mul(hn::Set(d, rate), hn::LoadU(d, r.g + i));
    hn::StoreU(hn::Sub(hn::LoadU(d, r.w + i), change), d, r.w + i);
  });
}

/// Adam's step on values that weight decay has already shrunk by `keep`.
template <typename Spec>
void AdamStep(const Spec& spec, float factor, float keep, const Row& r) {
  float* first = r.slot(0);
  float* second = r.slot(1);
  float* steps = r.slot(2);
  // A float counts exactly up to 2^24. Both corrections become 1 long before that.
  *steps += 1;
  const double t = *steps;
  const double correction1 = -std::expm1(t * std::log(static_cast<double>(spec.beta1)));
  const double correction2 = -std::expm1(t * std::log(static_cast<double>(spec.beta2)));
  const float rate = static_cast<float>(static_cast<double>(spec.learning_rate) *
                                        static_cast<double>(factor) / correction1);
  const float scale = static_cast<float>(1 / std::sqrt(correction2));
  ForColumns(r.dim, [&](auto d, size_t i) HWY_ATTR {
    const auto g = hn::LoadU(d, r.g + i);
    const auto m = hn::Add(hn::Mul(hn::Set(d, spec.beta1), hn::LoadU(d, first + i)),
                           hn::Mul(hn::Set(d, 1 - spec.beta1), g));
    const auto v = hn::Add(hn::Mul(hn::Set(d, spec.beta2), hn::LoadU(d, second + i)),
                           hn::Mul(hn::Set(d, 1 - spec.beta2), hn::Mul(g, g)));
    hn::StoreU(m, d, first + i);
    hn::StoreU(v, d, second + i);
    const auto below = hn::Add(hn::Mul(hn::Sqrt(v), hn::Set(d, scale)), hn::Set(d, spec.epsilon));
    const auto w = hn::Mul(hn::LoadU(d, r.w + i), hn::Set(d, keep));
    hn::StoreU(hn::Sub(w, hn::Div(hn::Mul(hn::Set(d, rate), m), below)), d, r.w + i);
  });
}
void Step(const AdamSpec& spec, float factor, const Row& r) {
  AdamStep(spec, factor, 1, r);
}
void Step(const AdamWSpec& spec, float factor, const Row& r) {
  AdamStep(spec, factor, 1 - spec.learning_rate * factor * spec.weight_decay, r);
}

void Step(const FtrlSpec& spec, float factor, const Row& r) {
  const float alpha = spec.learning_rate * factor;
  if (!(alpha > 0)) return;  // with a rate of 0, this gradient changes nothing
  float* z_slot = r.slot(0);
  float* n_slot = r.slot(1);
  ForColumns(r.dim, [&](auto d, size_t i) HWY_ATTR {
    const auto g = hn::LoadU(d, r.g + i);
    const auto n = hn::LoadU(d, n_slot + i);
    const auto n_next = hn::Add(n, hn::Mul(g, g));
    const auto root = hn::Sqrt(n_next);
    const auto sigma = hn::Div(hn::Sub(root, hn::Sqrt(n)), hn::Set(d, alpha));
    const auto z =
        hn::Sub(hn::Add(hn::LoadU(d, z_slot + i), g), hn::Mul(sigma, hn::LoadU(d, r.w + i)));
    hn::StoreU(z, d, z_slot + i);
    hn::StoreU(n_next, d, n_slot + i);
    const auto lambda1 = hn::Set(d, spec.lambda1);
    const auto below = hn::Add(hn::Div(hn::Add(hn::Set(d, spec.beta), root), hn::Set(d, alpha)),
                               hn::Set(d, spec.lambda2));
    const auto beyond = hn::Sub(hn::CopySign(lambda1, z), z);
    const auto w = hn::IfThenElseZero(hn::Gt(hn::Abs(z), lambda1), hn::Div(beyond, below));
    hn::StoreU(w, d, r.w + i);
  });
}

void ApplyRowsKernel(const OptimizerSpec& optimizer, float factor, uint32_t dim,
                     std::span<float* const> rows, const float* gradients) {
  std::visit(
      [&](const auto& spec) HWY_ATTR {
        for (size_t i = 0; i < rows.size(); ++i) {
          Step(spec, factor, Row{rows[i], gradients + i * dim, dim});
        }
      },
      optimizer);
}

/// If all of these exponent bits are set, the float is infinity or NaN.
constexpr uint32_t kExponent = 0x7f800000;

/// Looks at all rows without a branch, because nearly always all of them are finite.
size_t FirstNonFiniteRowKernel(std::span<float* const> rows, size_t floats) {
  const hn::ScalableTag<uint32_t> d;
  const auto exponent = hn::Set(d, kExponent);
  auto largest = hn::Zero(d);
  uint32_t largest_rest = 0;
  for (const float* const row : rows) {
    const uint32_t* const words = reinterpret_cast<const uint32_t*>(row);
    size_t i = 0;
    for (; i + hn::Lanes(d) <= floats; i += hn::Lanes(d)) {
      largest = hn::Max(largest, hn::And(hn::LoadU(d, words + i), exponent));
    }
    for (; i < floats; ++i) {
      uint32_t word = 0;
      std::memcpy(&word, row + i, sizeof(word));
      largest_rest = std::max(largest_rest, word & kExponent);
    }
  }
  if (largest_rest != kExponent && hn::AllFalse(d, hn::Eq(largest, exponent))) return rows.size();
  for (size_t r = 0; r < rows.size(); ++r) {
    for (size_t i = 0; i < floats; ++i) {
      if (!std::isfinite(rows[r][i])) return r;
    }
  }
  return rows.size();
}

size_t FirstNonFiniteKernel(std::span<const float> values) {
  const hn::ScalableTag<uint32_t> d;
  const uint32_t* words = reinterpret_cast<const uint32_t*>(values.data());
  const auto exponent = hn::Set(d, kExponent);
  size_t i = 0;
  for (; i + hn::Lanes(d) <= values.size(); i += hn::Lanes(d)) {
    const auto bad = hn::Eq(hn::And(hn::LoadU(d, words + i), exponent), exponent);
    if (!hn::AllFalse(d, bad)) break;
  }
  for (; i < values.size(); ++i) {
    uint32_t word = 0;
    std::memcpy(&word, &values[i], sizeof(word));
    if ((word & kExponent) == kExponent) return i;
  }
  return values.size();
}

}  // namespace HWY_NAMESPACE
}  // namespace muster::ps
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace muster::ps {

HWY_EXPORT(ApplyRowsKernel);
HWY_EXPORT(FirstNonFiniteKernel);
HWY_EXPORT(FirstNonFiniteRowKernel);

void ApplyRows(const OptimizerSpec& optimizer, float rate_factor, uint32_t dim,
               std::span<float* const> rows, const float* gradients) {
  HWY_DYNAMIC_DISPATCH(ApplyRowsKernel)(optimizer, rate_factor, dim, rows, gradients);
}

size_t FirstNonFiniteRow(std::span<float* const> rows, size_t floats) {
  return HWY_DYNAMIC_DISPATCH(FirstNonFiniteRowKernel)(rows, floats);
}

size_t FirstNonFinite(std::span<const float> values) {
  return HWY_DYNAMIC_DISPATCH(FirstNonFiniteKernel)(values);
}

}  // namespace muster::ps
#endif  // HWY_ONCE
