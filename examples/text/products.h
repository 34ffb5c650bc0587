#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

namespace text {

/// Some columns of a matrix, row-major: a view of memory that belongs to somebody else.
template <typename T>
struct View {
  T* data = nullptr;
  size_t rows = 0;
  size_t columns = 0;
  size_t stride = 0;  // elements from one row to the next

  std::span<T> row(size_t index) const { return {data + index * stride, columns}; }
  /// A part of it. It must lie inside.
  View part(size_t first_row, size_t row_count, size_t first_column, size_t column_count) const {
    return {data + first_row * stride + first_column, row_count, column_count, stride};
  }
  operator View<const T>() const
    requires(!std::is_const_v<T>)
  {
    return {data, rows, columns, stride};
  }
};
template <typename T>
using ConstView = View<const T>;

/// All of a matrix `[rows, columns]` that lies in memory without gaps.
template <typename T>
View<T> Whole(std::span<T> values, size_t columns) {
  return {values.data(), values.size() / columns, columns, columns};
}

/// A matrix whose memory is used again for the next minibatch.
template <typename T>
class Matrix {
 public:
  /// The values are those of before, or 0.
  View<T> Resize(size_t rows, size_t columns) {
    values_.resize(rows * columns);
    columns_ = columns;
    return view();
  }
  View<T> view() { return Whole(std::span<T>(values_), columns_); }
  std::span<T> values() { return values_; }

 private:
  std::vector<T> values_;
  size_t columns_ = 1;
};

/// What happens to the values that `out` has.
enum class Into : uint8_t { kReplace, kAdd };

/// The matrix products; the only functions that use Eigen. `out` must not overlap the factors. The
/// result does not depend on where in memory anything is: equal values give equal bits. T is float
/// or double.
/// out = a b
template <typename T>
void Multiply(std::type_identity_t<ConstView<T>> a, std::type_identity_t<ConstView<T>> b,
              View<T> out, Into into = Into::kReplace);
/// out = transposed(a) b
template <typename T>
void MultiplyLeftTransposed(std::type_identity_t<ConstView<T>> a,
                            std::type_identity_t<ConstView<T>> b, View<T> out,
                            Into into = Into::kReplace);
/// out = a transposed(b)
template <typename T>
void MultiplyRightTransposed(std::type_identity_t<ConstView<T>> a,
                             std::type_identity_t<ConstView<T>> b, View<T> out,
                             Into into = Into::kReplace);

}  // namespace text
