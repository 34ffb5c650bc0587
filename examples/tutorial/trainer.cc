// A worker that learns which orders customers send back. docs/tutorial.md explains it block by
// block.

#include <muster/muster.h>

#include <algorithm>
#include <any>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

constexpr size_t kNumbers = 3, kCategories = 2, kColumns = kNumbers + kCategories + 1;
constexpr size_t kEmbedding = 4;                                     // floats per category
constexpr size_t kInputs = kNumbers + 1 + kCategories * kEmbedding;  // one is always 1: the bias
constexpr size_t kHidden = 8;

/// A record that could be parsed.
struct Order {
  std::array<float, kNumbers> numbers{};     // price, days, discount; about 0 to 2 each
  std::array<uint64_t, kCategories> keys{};  // of shop and product
  float returned = 0;                        // the label: 0 or 1
};

/// The key of a category's row: FNV-1a of "column=value". Stored rows depend on it, so it must
/// never change. (std::hash may.)
uint64_t KeyOf(std::string_view column, std::string_view value) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const std::string_view text : {column, std::string_view("="), value}) {
    for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  }
  return hash;
}

std::optional<float> NumberOf(std::string_view cell) {
  float value = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  const bool whole = error == std::errc() && end == cell.data() + cell.size();
  return whole && std::isfinite(value) ? std::optional(value) : std::nullopt;
}

/// Parses "price,days,discount,shop,product,returned". Returns the reason if the line is not an
/// order.
std::optional<std::string> Parse(std::string_view line, Order& order) {
  std::array<std::string_view, kColumns> cells;
  size_t count = 0;
  for (size_t begin = 0; begin <= line.size(); ++count) {
    const size_t end = std::min(line.find(',', begin), line.size());
    if (count < kColumns) cells[count] = line.substr(begin, end - begin);
    begin = end + 1;
  }
  if (count != kColumns) return std::to_string(count) + " columns, not 6";
  constexpr std::array<float, kNumbers> kScales = {100, 7, 0.5f};
  for (size_t i = 0; i < kNumbers; ++i) {
    const std::optional<float> number = NumberOf(cells[i]);
    if (!number) return "column " + std::to_string(i + 1) + " is not a number";
    order.numbers[i] = *number / kScales[i];
  }
  order.keys = {KeyOf("shop", cells[3]), KeyOf("product", cells[4])};
  if (cells[5] != "0" && cells[5] != "1") return "the label is neither 0 nor 1";
  order.returned = cells[5] == "1" ? 1 : 0;
  return std::nullopt;
}

/// The weights, which live on the servers.
struct Tables {
  muster::Table embedding;     // a row of kEmbedding floats per category
  muster::DenseTensor hidden;  // [kHidden, kInputs]
  muster::DenseTensor output;  // [kHidden + 1]: the last one is the bias
};

Tables Register(muster::Session& session) {
  const muster::Adagrad adagrad{.learning_rate = 0.05f, .initial_accumulator = 0.01f};
  const muster::ConstantRate schedule{.warmup_steps = 100};
  return {session.SparseTable({.name = "embedding",
                               .dim = kEmbedding,
                               .optimizer = adagrad,
                               .initializer = muster::Normal{.stddev = 0.05f},
                               .schedule = schedule}),
          session.DenseTable({.name = "hidden",
                              .shape = {kHidden, kInputs},
                              .optimizer = adagrad,
                              .initializer = muster::Uniform{.low = -0.3f, .high = 0.3f},
                              .schedule = schedule}),
          session.DenseTable({.name = "output",
                              .shape = {kHidden + 1},
                              .optimizer = adagrad,
                              .initializer = muster::Uniform{.low = -0.3f, .high = 0.3f},
                              .schedule = schedule})};
}

/// What `prepare` leaves for the loop.
struct Prepared {
  std::vector<Order> orders;
  std::vector<uint64_t> keys;  // [orders * kCategories]
};

/// Parses the records of a minibatch and asks for the rows that they need.
void Prepare(const Tables& tables, muster::Minibatch& batch) {
  Prepared prepared;
  for (size_t i = 0; i < batch.records().size(); ++i) {
    Order order;
    if (const std::optional<std::string> why = Parse(batch.records()[i], order)) {
      batch.Reject(i, *why);
      continue;
    }
    prepared.keys.insert(prepared.keys.end(), order.keys.begin(), order.keys.end());
    prepared.orders.push_back(order);
  }
  batch.Need(tables.embedding, prepared.keys);
  batch.Need(tables.hidden);
  batch.Need(tables.output);
  batch.user_data() = std::move(prepared);
}

/// One record on its way through the network.
struct Activations {
  std::array<float, kInputs> inputs{};      // numbers, 1, embeddings of shop and product
  std::array<float, kHidden + 1> hidden{};  // after the ReLU; the last one is 1
  float probability = 0;
};

Activations Forward(const Order& order, const float* embeddings, const muster::Rows& hidden,
                    const muster::Rows& output) {
  Activations a;
  std::ranges::copy(order.numbers, a.inputs.begin());
  a.inputs[kNumbers] = 1;
  std::copy_n(embeddings, kCategories * kEmbedding, a.inputs.begin() + kNumbers + 1);
  for (size_t h = 0; h < kHidden; ++h) {
    float sum = 0;
    for (size_t i = 0; i < kInputs; ++i) sum += hidden.data()[h * kInputs + i] * a.inputs[i];
    a.hidden[h] = std::max(sum, 0.0f);
  }
  a.hidden[kHidden] = 1;
  float logit = 0;
  for (size_t h = 0; h <= kHidden; ++h) logit += output.data()[h] * a.hidden[h];
  a.probability = 1 / (1 + std::exp(-logit));
  return a;
}

/// Sums over the records of a minibatch, in the shapes of the rows that were pulled.
struct Gradients {
  explicit Gradients(size_t orders) : embeddings(orders * kCategories * kEmbedding) {}
  std::vector<float> embeddings;
  std::vector<float> hidden = std::vector<float>(kHidden * kInputs);
  std::vector<float> output = std::vector<float>(kHidden + 1);
};

/// Adds the gradients of one record. `slope` is d loss / d logit; `embeddings` is the record's
/// place in gradients.embeddings.
void Backward(const Activations& a, float slope, const muster::Rows& hidden,
              const muster::Rows& output, Gradients& gradients, float* embeddings) {
  for (size_t h = 0; h <= kHidden; ++h) gradients.output[h] += slope * a.hidden[h];
  for (size_t h = 0; h < kHidden; ++h) {
    if (a.hidden[h] == 0) continue;  // the ReLU lets nothing back
    const float down = slope * output.data()[h];
    const size_t row = h * kInputs;
    for (size_t i = 0; i < kInputs; ++i) gradients.hidden[row + i] += down * a.inputs[i];
    const float* const weights = hidden.data() + row + kNumbers + 1;
    for (size_t e = 0; e < kCategories * kEmbedding; ++e) embeddings[e] += down * weights[e];
  }
}

void RunMinibatch(const Tables& tables, muster::Minibatch& batch) {
  const auto& prepared = std::any_cast<const Prepared&>(batch.user_data());
  const size_t count = prepared.orders.size();
  if (count == 0) return;  // every record was rejected
  const muster::Rows embeddings = batch.Pull(tables.embedding, prepared.keys);
  const muster::Rows hidden = batch.Pull(tables.hidden), output = batch.Pull(tables.output);
  Gradients gradients(count);
  std::vector<float> scores;
  std::vector<uint8_t> labels;
  double loss = 0;
  for (size_t i = 0; i < count; ++i) {
    const Order& order = prepared.orders[i];
    const size_t place = i * kCategories * kEmbedding;
    const Activations a = Forward(order, embeddings.data() + place, hidden, output);
    const float right = order.returned == 1 ? a.probability : 1 - a.probability;
    loss -= std::log(std::max(right, 1e-7f));
    scores.push_back(a.probability);
    labels.push_back(order.returned == 1);
    const float slope = a.probability - order.returned;
    Backward(a, slope, hidden, output, gradients, gradients.embeddings.data() + place);
  }
  const auto records = static_cast<double>(count);
  batch.Metric("loss", loss / records, records);
  batch.Auc("auc", scores, labels);
  if (batch.evaluate()) return;
  const auto nominal = static_cast<float>(batch.nominal_size());
  for (float& gradient : gradients.hidden) gradient /= nominal;
  for (float& gradient : gradients.output) gradient /= nominal;
  batch.Push(tables.embedding, prepared.keys, gradients.embeddings);
  batch.Push(tables.hidden, gradients.hidden);
  batch.Push(tables.output, gradients.output);
}

}  // namespace

int main() {
  auto session = muster::Session::Connect(muster::SessionOptions::FromEnvironment()).value();
  const Tables tables = Register(session);
  const auto prepare = [&](muster::Minibatch& batch) { Prepare(tables, batch); };
  while (auto shard = session.NextShard()) {
    for (muster::Minibatch& batch : shard->Minibatches(prepare)) {
      RunMinibatch(tables, batch);
      batch.Commit();
    }
  }
  return session.Finish();
}
