// How often a loop in its steady state asks for memory: the operator new of this program counts.
#include <cstdlib>
#include <new>
#include <numeric>

#include "tests/worker_sdk/session/session_fixture.h"

namespace {
thread_local uint64_t allocations = 0;
}  // namespace

void* operator new(size_t bytes, const std::nothrow_t& /*tag*/) noexcept {
  ++allocations;
  return std::malloc(bytes);
}
void* operator new(size_t bytes) {
  if (void* const memory = operator new(bytes, std::nothrow)) return memory;
  throw std::bad_alloc();
}
void* operator new[](size_t bytes) {
  return operator new(bytes);
}
// Not inlined, or the compiler takes `free` for the wrong partner of `new`.
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, size_t) noexcept {
  operator delete(memory);
}
void operator delete(void* memory, const std::nothrow_t& /*tag*/) noexcept {
  operator delete(memory);
}
void operator delete[](void* memory) noexcept {
  operator delete(memory);
}
void operator delete[](void* memory, size_t) noexcept {
  operator delete(memory);
}

namespace muster {
namespace {

class AllocationsTest : public SessionTest {
 protected:
  static constexpr uint32_t kMinibatches = 60;

  /// How often the loop's thread asks for memory for a minibatch with so many keys, in the middle
  /// of a shard; where it has the least to do besides, for answers come when they come.
  uint64_t CountWith(uint64_t keys_each) {
    FakeMaster master(kPartitions);
    master.SetServer(server_->address(), 1);
    const std::string path = dir_.File("shard-" + std::to_string(keys_each));
    for (uint32_t i = 0; i < kMinibatches; ++i) std::ofstream(path, std::ios::app) << i << "\n";
    master.AddShard(path, 1, DatasetMode::kTrain);
    master.EndWhenDone();
    Session session = Session::Connect({.master_address = master.address(),
                                        .worker_name = "worker-0",
                                        .slot_file = dir_.File("slot")})
                          .value();
    const Table table = session.SparseTable({.name = "t", .dim = 2, .optimizer = Sum{}});
    std::vector<uint64_t> keys(keys_each);
    std::iota(keys.begin(), keys.end(), uint64_t{0});
    const std::vector<float> gradients(2 * keys_each, 1);
    std::vector<uint64_t> counts;
    while (std::optional<Shard> shard = session.NextShard()) {
      uint64_t before = allocations;
      const auto prepare = [&](Minibatch& batch) { batch.Need(table, keys); };
      for (Minibatch& batch : shard->Minibatches(prepare)) {
        batch.Pull(table, keys);
        batch.Push(table, keys, gradients);
        batch.Commit();
        counts.push_back(allocations - before);
        before = allocations;
      }
    }
    EXPECT_EQ(session.Finish(), 0);
    EXPECT_EQ(counts.size(), kMinibatches);
    return std::ranges::min(std::span(counts).subspan(kMinibatches / 3, kMinibatches / 3));
  }
};

TEST_F(AllocationsTest, AMinibatchTakesFewPiecesOfMemoryHoweverManyKeysItHas) {
  // A pull and a push, each through maps, requests, frames and handlers of its own: 48. More bytes
  // take more reads of the socket.
  EXPECT_LT(CountWith(64), 56u);
  EXPECT_LT(CountWith(10'000), 96u);
}

}  // namespace
}  // namespace muster
