// A worker of the counter job that divides by zero: every minibatch pushes a right gradient to one
// table and a NaN to another. For bad_input_test.py.

#include <muster/muster.h>

#include <limits>
#include <vector>

int main() {
  auto session = muster::Session::Connect(muster::SessionOptions::FromEnvironment()).value();
  const muster::Table ids =
      session.SparseTable({.name = "ids", .dim = 1, .optimizer = muster::Sum{}});
  const muster::Table wide =
      session.SparseTable({.name = "wide", .dim = 33, .optimizer = muster::Sum{}});
  const std::vector<uint64_t> keys = {1, 2};
  const std::vector<float> ones(2, 1.0f);
  std::vector<float> gradients(2 * 33, 1.0f);
  gradients[33 + 7] = std::numeric_limits<float>::quiet_NaN();
  while (auto shard = session.NextShard()) {
    for (muster::Minibatch& batch : shard->Minibatches()) {
      batch.Push(ids, keys, ones);
      batch.Push(wide, keys, gradients);
      batch.Commit();
    }
  }
  return session.Finish();
}
