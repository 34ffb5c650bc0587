#include "examples/flights/deepfm.h"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>

namespace flights {
namespace {

template <typename T>
using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <typename T>
using RowVector = Eigen::Matrix<T, 1, Eigen::Dynamic>;
template <typename T>
using ColumnVector = Eigen::Matrix<T, Eigen::Dynamic, 1>;

template <typename T>
Eigen::Map<const Matrix<T>> View(std::span<const T> values, size_t rows, size_t columns) {
  return {values.data(), static_cast<Eigen::Index>(rows), static_cast<Eigen::Index>(columns)};
}
template <typename T>
Eigen::Map<Matrix<T>> View(std::vector<T>& values, size_t rows, size_t columns) {
  values.resize(rows * columns);
  return {values.data(), static_cast<Eigen::Index>(rows), static_cast<Eigen::Index>(columns)};
}
template <typename T>
Eigen::Map<const RowVector<T>> Row(std::span<const T> values) {
  return {values.data(), static_cast<Eigen::Index>(values.size())};
}
template <typename T>
Eigen::Map<const ColumnVector<T>> Column(std::span<const T> values) {
  return {values.data(), static_cast<Eigen::Index>(values.size())};
}
template <typename T>
Eigen::Map<ColumnVector<T>> Column(std::vector<T>& values, size_t size) {
  values.resize(size);
  return {values.data(), static_cast<Eigen::Index>(size)};
}
template <typename T>
Eigen::Map<RowVector<T>> Row(std::vector<T>& values, size_t size) {
  values.resize(size);
  return {values.data(), static_cast<Eigen::Index>(size)};
}

}  // namespace

std::array<DenseInfo, kDenseCount> DenseTensors(const DeepFmShape& shape) {
  const auto bound = [](size_t inputs) { return 1.0f / std::sqrt(static_cast<float>(inputs)); };
  const size_t width = shape.fields * shape.dim;
  return {{
      {"hidden1_weight", {width, shape.hidden1}, bound(width)},
      {"hidden1_bias", {shape.hidden1}, bound(width)},
      {"hidden2_weight", {shape.hidden1, shape.hidden2}, bound(shape.hidden1)},
      {"hidden2_bias", {shape.hidden2}, bound(shape.hidden1)},
      {"output_weight", {shape.hidden2}, bound(shape.hidden2)},
      {"bias", {1}, 0},
  }};
}

template <typename T>
std::span<const T> DeepFm<T>::Forward(const DeepFmInputs<T>& inputs) {
  const size_t records = inputs.records;
  const auto& [fields, dim, size1, size2] = shape_;
  const auto flat = View(inputs.embeddings, records, fields * dim);

  auto hidden1 = View(hidden1_, records, size1);
  hidden1.noalias() = flat * View(inputs.dense[kHidden1Weight], fields * dim, size1);
  hidden1 = (hidden1.rowwise() + Row(inputs.dense[kHidden1Bias])).cwiseMax(T(0));
  auto hidden2 = View(hidden2_, records, size2);
  hidden2.noalias() = hidden1 * View(inputs.dense[kHidden2Weight], size1, size2);
  hidden2 = (hidden2.rowwise() + Row(inputs.dense[kHidden2Bias])).cwiseMax(T(0));

  auto logits = Column(probabilities_, records);
  logits.noalias() = hidden2 * Column(inputs.dense[kOutputWeight]);
  logits.array() += inputs.dense[kBias][0];
  logits += View(inputs.first_order, records, fields).rowwise().sum();

  // Sum over pairs of <v_i, v_j> = (|sum of v|^2 - sum of |v|^2) / 2.
  auto sums = View(field_sums_, records, dim);
  for (size_t record = 0; record < records; ++record) {
    const auto rows =
        View(inputs.embeddings.subspan(record * fields * dim, fields * dim), fields, dim);
    sums.row(record) = rows.colwise().sum();
    logits[record] += (sums.row(record).squaredNorm() - rows.squaredNorm()) / 2;
  }
  logits = (T(1) + (-logits.array()).exp()).inverse();
  return probabilities_;
}

template <typename T>
void DeepFm<T>::Backward(const DeepFmInputs<T>& inputs, std::span<const T> labels,
                         DeepFmGradients<T>& gradients) {
  const size_t records = inputs.records;
  const auto& [fields, dim, size1, size2] = shape_;
  auto& dense = gradients.dense;
  const auto flat = View(inputs.embeddings, records, fields * dim);
  const auto hidden1 = View(std::span<const T>(hidden1_), records, size1);
  const auto hidden2 = View(std::span<const T>(hidden2_), records, size2);

  auto delta = Column(delta_, records);
  delta = (Column(std::span<const T>(probabilities_)) - Column(labels)) /
          T(inputs.divisor != 0 ? inputs.divisor : records);
  dense[kBias].assign(1, delta.sum());
  Column(dense[kOutputWeight], size2).noalias() = hidden2.transpose() * delta;

  auto delta2 = View(hidden2_delta_, records, size2);
  delta2.noalias() = delta * Row(inputs.dense[kOutputWeight]);
  delta2 = (hidden2.array() > T(0)).select(delta2, T(0));
  Row(dense[kHidden2Bias], size2) = delta2.colwise().sum();
  View(dense[kHidden2Weight], size1, size2).noalias() = hidden1.transpose() * delta2;

  auto delta1 = View(hidden1_delta_, records, size1);
  delta1.noalias() = delta2 * View(inputs.dense[kHidden2Weight], size1, size2).transpose();
  delta1 = (hidden1.array() > T(0)).select(delta1, T(0));
  Row(dense[kHidden1Bias], size1) = delta1.colwise().sum();
  View(dense[kHidden1Weight], fields * dim, size1).noalias() = flat.transpose() * delta1;

  BackwardEmbeddings(inputs, gradients);
}

template <typename T>
void DeepFm<T>::BackwardEmbeddings(const DeepFmInputs<T>& inputs, DeepFmGradients<T>& gradients) {
  const size_t records = inputs.records;
  const auto& [fields, dim, size1, size2] = shape_;
  const auto delta = Column(std::span<const T>(delta_));
  const auto delta1 = View(std::span<const T>(hidden1_delta_), records, size1);

  View(gradients.first_order, records, fields) = delta.replicate(1, fields);
  View(gradients.embeddings, records, fields * dim).noalias() =
      delta1 * View(inputs.dense[kHidden1Weight], fields * dim, size1).transpose();
  auto rows = View(gradients.embeddings, records * fields, dim);
  const auto values = View(inputs.embeddings, records * fields, dim);
  const auto sums = View(std::span<const T>(field_sums_), records, dim);
  for (size_t record = 0; record < records; ++record) {
    for (size_t row = record * fields; row < (record + 1) * fields; ++row) {
      rows.row(row) += delta[record] * (sums.row(record) - values.row(row));
    }
  }
}

template class DeepFm<float>;
template class DeepFm<double>;

double LogLossSum(std::span<const float> probabilities, std::span<const float> labels) {
  constexpr double kMargin = 1e-7;
  double sum = 0;
  for (size_t i = 0; i < probabilities.size(); ++i) {
    const double p = std::clamp<double>(probabilities[i], kMargin, 1 - kMargin);
    sum -= labels[i] > 0.5f ? std::log(p) : std::log(1 - p);
  }
  return sum;
}

}  // namespace flights
