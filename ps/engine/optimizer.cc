#include "ps/engine/optimizer.h"

#include <algorithm>
#include <cmath>

namespace muster::ps {
namespace {

template <typename... F>
struct Overloaded : F... {
  using F::operator()...;
};

/// FTRL computes the weights from its slots. If a row starts at a weight w != 0 (initializer, warm
/// start), it needs the z that gives this w at n = 0. With z = 0, the first push would forget w.
void InitFtrl(const FtrlSpec& spec, uint32_t dim, float* row) {
  float* z = row + dim;
  float* n = z + dim;
  const float slope = spec.beta / spec.learning_rate + spec.lambda2;
  for (uint32_t i = 0; i < dim; ++i) {
    z[i] = row[i] == 0 ? 0 : -(row[i] * slope + std::copysign(spec.lambda1, row[i]));
    n[i] = 0;
  }
}

}  // namespace

uint32_t SlotFloats(const OptimizerSpec& optimizer, uint32_t dim) {
  return std::visit(Overloaded{
                        [](const SumSpec&) { return 0u; },
                        [](const SgdSpec&) { return 0u; },
                        [&](const MomentumSpec&) { return dim; },
                        [&](const AdagradSpec&) { return dim; },
                        [](const RowwiseAdagradSpec&) { return 1u; },
                        [&](const AdamSpec&) { return 2 * dim + 1; },
                        [&](const AdamWSpec&) { return 2 * dim + 1; },
                        [&](const FtrlSpec&) { return 2 * dim; },
                    },
                    optimizer);
}

void InitSlots(const OptimizerSpec& optimizer, uint32_t dim, float* row) {
  std::visit(
      Overloaded{
          [&](const AdagradSpec& spec) { std::fill_n(row + dim, dim, spec.initial_accumulator); },
          [&](const RowwiseAdagradSpec& spec) { row[dim] = spec.initial_accumulator; },
          [&](const FtrlSpec& spec) { InitFtrl(spec, dim, row); },
          [&](const auto&) { std::fill_n(row + dim, SlotFloats(optimizer, dim), 0.0f); },
      },
      optimizer);
}

}  // namespace muster::ps
