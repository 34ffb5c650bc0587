// A worker whose rows count how often a record number was trained, and whose outputs are these
// rows: each record's number and its count. While the file SLOW is there, minibatches take time.
// DIM is how wide the rows are. For the tests of this folder.

#include <muster/muster.h>

#include <poll.h>
#include <unistd.h>

#include <cstdlib>
#include <vector>

namespace {

std::vector<uint64_t> KeysOf(const muster::Minibatch& batch) {
  const std::span<const int64_t> numbers = batch.record_numbers();
  return {numbers.begin(), numbers.end()};
}

}  // namespace

int main() {
  auto session = muster::Session::Connect(muster::SessionOptions::FromEnvironment()).value();
  const char* const dim = std::getenv("DIM");
  const muster::Table counts =
      session.SparseTable({.name = "counts",
                           .dim = dim == nullptr ? 1u : static_cast<uint32_t>(std::atoi(dim)),
                           .optimizer = muster::Sum{}});
  const char* const slow = std::getenv("SLOW");
  while (auto shard = session.NextShard()) {
    const auto prepare = [&](muster::Minibatch& batch) { batch.Need(counts, KeysOf(batch)); };
    for (muster::Minibatch& batch : shard->Minibatches(prepare)) {
      const std::vector<uint64_t> keys = KeysOf(batch);
      if (slow != nullptr && ::access(slow, F_OK) == 0) {
        ::poll(nullptr, 0, /*timeout ms*/ 5);
      }
      if (!batch.evaluate()) {
        batch.Push(counts, keys, std::vector<float>(keys.size(), 1.0f));
        continue;
      }
      const muster::Rows rows = batch.Pull(counts, keys);
      std::vector<float> output;
      for (size_t i = 0; i < keys.size(); ++i) {
        output.push_back(static_cast<float>(keys[i]));
        output.push_back(rows[i][0]);
      }
      batch.Output(output, 2);
    }
  }
  return session.Finish();
}
