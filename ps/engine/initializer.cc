#include "ps/engine/initializer.h"

#include <algorithm>
#include <cmath>

#include "base/random.h"

namespace muster::ps {
namespace {

/// A uniform number in (0, 1), without the ends: 53 random bits, plus one half.
double OpenUniform(uint64_t word) {
  return (static_cast<double>(word >> 12) + 0.5) * 0x1.0p-52;
}

}  // namespace

double InverseNormal(double p) {
  const double q = p - 0.5;
  if (std::abs(q) <= 0.425) {
    const double r = 0.180625 - q * q;
    return q *
           (((5.9109374720e+01 * r + 1.5929113202e+02) * r + 5.0434271938e+01) * r +
            3.3871327179e+00) /
           (((6.7187563600e+01 * r + 7.8757757664e+01) * r + 1.7895169469e+01) * r + 1.0);
  }
  double r = std::sqrt(-std::log(q < 0 ? p : 1 - p));
  double value = 0;
  if (r <= 5) {
    r -= 1.6;
    value = (((1.7023821103e-01 * r + 1.3067284816e+00) * r + 2.7568153900e+00) * r +
             1.4234372777e+00) /
            ((1.2021132975e-01 * r + 7.3700164250e-01) * r + 1.0);
  } else {
    r -= 5;
    value = (((1.7337203997e-02 * r + 4.2868294337e-01) * r + 3.0812263860e+00) * r +
             6.6579051150e+00) /
            ((1.2258202635e-02 * r + 2.4197894225e-01) * r + 1.0);
  }
  return q < 0 ? -value : value;
}

void InitialValues(const InitializerSpec& initializer, uint64_t seed, TableId table, uint64_t key,
                   std::span<float> values) {
  const uint64_t row = HashWords(seed, table.value(), key);
  const double a = initializer.a;
  const double b = initializer.b;
  switch (initializer.kind) {
    case InitializerSpec::Kind::kZero:
      std::ranges::fill(values, 0.0f);
      return;
    case InitializerSpec::Kind::kConstant:
      std::ranges::fill(values, initializer.a);
      return;
    case InitializerSpec::Kind::kUniform:
      for (size_t column = 0; column < values.size(); ++column) {
        values[column] = static_cast<float>(a + (b - a) * OpenUniform(HashWords(row, column)));
      }
      return;
    case InitializerSpec::Kind::kNormal:
      for (size_t column = 0; column < values.size(); ++column) {
        values[column] =
            static_cast<float>(a + b * InverseNormal(OpenUniform(HashWords(row, column))));
      }
      return;
  }
}

uint64_t ElementCount(const TableSpec& table) {
  if (table.shape.empty()) return 0;
  uint64_t count = 1;
  for (const uint64_t extent : table.shape) {
    if (__builtin_mul_overflow(count, extent, &count)) return UINT64_MAX;
  }
  return count;
}

void InitialRow(const TableSpec& table, uint64_t seed, uint64_t key, std::span<float> values) {
  InitialValues(table.initializer, seed, table.id, key, values);
  if (table.shape.empty()) return;
  const uint64_t elements = ElementCount(table);
  const uint64_t begin = key * table.dim;
  if (begin + values.size() <= elements) return;
  const uint64_t used = begin < elements ? elements - begin : 0;
  std::fill(values.begin() + static_cast<std::ptrdiff_t>(used), values.end(), 0.0f);
}

}  // namespace muster::ps
