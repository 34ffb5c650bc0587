#include "examples/text/products.h"

#include <Eigen/Core>

namespace text {
namespace {

template <typename T>
using EigenMatrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

template <typename T>
auto ToEigen(View<T> view) {
  using Element = std::remove_const_t<T>;
  using Mapped =
      std::conditional_t<std::is_const_v<T>, const EigenMatrix<Element>, EigenMatrix<Element>>;
  return Eigen::Map<Mapped, Eigen::Unaligned, Eigen::OuterStride<>>(
      view.data, static_cast<Eigen::Index>(view.rows), static_cast<Eigen::Index>(view.columns),
      Eigen::OuterStride<>(static_cast<Eigen::Index>(view.stride)));
}

/// Eigen computes small products another way, in which the order of additions depends on the
/// memory's alignment. So it is told to use the way of large ones, which copies the factors first.
template <typename T, typename A, typename B>
void Compute(const A& a, const B& b, View<T> out, Into into) {
  auto target = ToEigen(out);
  if (into == Into::kReplace) target.setZero();
  Eigen::internal::generic_product_impl<A, B, Eigen::DenseShape, Eigen::DenseShape,
                                        Eigen::GemmProduct>::scaleAndAddTo(target, a, b, T(1));
}

}  // namespace

template <typename T>
void Multiply(std::type_identity_t<ConstView<T>> a, std::type_identity_t<ConstView<T>> b,
              View<T> out, Into into) {
  Compute(ToEigen(a), ToEigen(b), out, into);
}

template <typename T>
void MultiplyLeftTransposed(std::type_identity_t<ConstView<T>> a,
                            std::type_identity_t<ConstView<T>> b, View<T> out, Into into) {
  const auto mapped = ToEigen(a);
  Compute(mapped.transpose(), ToEigen(b), out, into);
}

template <typename T>
void MultiplyRightTransposed(std::type_identity_t<ConstView<T>> a,
                             std::type_identity_t<ConstView<T>> b, View<T> out, Into into) {
  const auto mapped = ToEigen(b);
  Compute(ToEigen(a), mapped.transpose(), out, into);
}

#define TEXT_INSTANTIATE(T)                                                           \
  template void Multiply<T>(ConstView<T>, ConstView<T>, View<T>, Into);               \
  template void MultiplyLeftTransposed<T>(ConstView<T>, ConstView<T>, View<T>, Into); \
  template void MultiplyRightTransposed<T>(ConstView<T>, ConstView<T>, View<T>, Into)
TEXT_INSTANTIATE(float);
TEXT_INSTANTIATE(double);
#undef TEXT_INSTANTIATE

}  // namespace text
