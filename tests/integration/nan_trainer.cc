// A worker of the counter job that divides by zero: every minibatch pushes a right gradient to one
// table and a NaN to another; with GRADIENT=large, a finite gradient that overflows in the row. For
// bad_input_test.py.

#include <muster/muster.h>

#include <cstdlib>
#include <limits>
#include <string_view>
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
  const char* const gradient = std::getenv("GRADIENT");
  const bool is_large = gradient != nullptr && gradient == std::string_view("large");
  gradients[33 + 7] = is_large ? 3e38f : std::numeric_limits<float>::quiet_NaN();
  while (auto shard = session.NextShard()) {
    for (muster::Minibatch& batch : shard->Minibatches()) {
      batch.Push(ids, keys, ones);
      batch.Push(wide, keys, gradients);
      batch.Commit();
    }
  }
  return session.Finish();
}
