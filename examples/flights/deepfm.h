#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace flights {

/// Sizes of the network: every field value has an embedding of `dim`; the embeddings of a record,
/// side by side, go through two hidden layers.
struct DeepFmShape {
  size_t fields = 9;
  size_t dim = 16;
  size_t hidden1 = 64;
  size_t hidden2 = 32;
};

/// How the weights are trained: Adagrad everywhere. The first steps of Adagrad are large, and with
/// asynchronous workers several of them are computed from the same weights; the accumulator's start
/// (in squares of mean gradients) and the warm-up keep them from adding up.
struct TrainingOptions {
  float learning_rate = 0.05f;
  float initial_accumulator = 1e-5f;
  float embedding_stddev = 0.01f;  // of initial embeddings; first-order weights start at 0
  uint64_t warmup_steps = 200;  // minibatches over which the rate grows linearly to learning_rate
};

/// The dense tensors of the network, in the order in which every array of them is indexed.
enum DenseId : size_t {
  kHidden1Weight,  // [fields * dim, hidden1]
  kHidden1Bias,    // [hidden1]
  kHidden2Weight,  // [hidden1, hidden2]
  kHidden2Bias,    // [hidden2]
  kOutputWeight,   // [hidden2]
  kBias,           // [1]; of the whole model
  kDenseCount,
};

/// Name of the tensor as a table of the job, its shape, and half the width of its uniform initial
/// distribution (1 / sqrt of the layer's inputs; 0 for the model's bias).
struct DenseInfo {
  std::string_view name;
  std::vector<uint64_t> shape;
  float initial_bound = 0;
};
std::array<DenseInfo, kDenseCount> DenseTensors(const DeepFmShape& shape);

/// What the network is evaluated with; all float arrays are row-major and belong to the caller.
template <typename T>
struct DeepFmInputs {
  size_t records = 0;
  std::span<const T> embeddings;   // [records * fields, dim]
  std::span<const T> first_order;  // [records * fields]
  std::array<std::span<const T>, kDenseCount> dense;
  /// The sum of the gradients of all records is divided by it; 0: by `records`.
  size_t divisor = 0;
};

/// Gradients of the MEAN log loss over the batch, as PyTorch's criterion reduces by default, shaped
/// as the inputs. (Adagrad's steps hardly depend on the scale of gradients; plain SGD's would.)
template <typename T>
struct DeepFmGradients {
  std::vector<T> embeddings;
  std::vector<T> first_order;
  std::array<std::vector<T>, kDenseCount> dense;
};

/// DeepFM: a factorization machine over the embeddings plus a perceptron over the same embeddings;
/// logit = bias + sum of first-order weights + sum over pairs of fields of the dot product of their
/// embeddings + perceptron. Holds only scratch memory between Forward and Backward: the weights are
/// the caller's. Not thread-safe. T is float, or double for gradient checks.
/// Source: Guo et al., "DeepFM: A Factorization-Machine based Neural Network for CTR Prediction",
/// IJCAI 2017.
template <typename T>
class DeepFm {
 public:
  explicit DeepFm(const DeepFmShape& shape) : shape_(shape) {}
  const DeepFmShape& shape() const { return shape_; }

  /// Probabilities `[records]` of label 1; valid until the next call.
  std::span<const T> Forward(const DeepFmInputs<T>& inputs);

  /// Gradients for the inputs of the last Forward and their labels `[records]`, 0 or 1.
  void Backward(const DeepFmInputs<T>& inputs, std::span<const T> labels,
                DeepFmGradients<T>& gradients);

 private:
  void BackwardEmbeddings(const DeepFmInputs<T>& inputs, DeepFmGradients<T>& gradients);

  DeepFmShape shape_;
  std::vector<T> field_sums_;     // [records, dim]
  std::vector<T> hidden1_;        // [records, hidden1], after the rectifier
  std::vector<T> hidden2_;        // [records, hidden2]
  std::vector<T> probabilities_;  // [records]
  std::vector<T> delta_;          // [records]: d loss / d logit
  std::vector<T> hidden1_delta_;  // as hidden1_
  std::vector<T> hidden2_delta_;  // as hidden2_
};

/// Sum over the records of -log(probability of the label), probabilities kept away from 0 and 1.
double LogLossSum(std::span<const float> probabilities, std::span<const float> labels);

}  // namespace flights
