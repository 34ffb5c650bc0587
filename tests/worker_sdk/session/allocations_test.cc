// How often the threads of a worker in its steady state ask for memory; the operator new of this
// program counts it. Left out are the control thread, which speaks gRPC a few times for each shard,
// and what Asio takes for an operation on a socket, which it keeps for the next one and does not
// take by operator new.
#include <dirent.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <numeric>

#include "tests/worker_sdk/session/session_fixture.h"
#include "worker_sdk/core/kept_memory.h"

namespace {

/// The requests of one thread since it began.
struct ThreadCount {
  std::atomic<pid_t> thread{0};
  std::atomic<uint64_t> allocations{0};
};
constexpr size_t kThreadsMax = 1024;
ThreadCount counts[kThreadsMax];
std::atomic<size_t> threads{0};

ThreadCount& OfThisThread() {
  thread_local ThreadCount* mine = nullptr;
  if (mine == nullptr) {
    mine = &counts[std::min(threads++, kThreadsMax - 1)];
    mine->thread = ::gettid();
  }
  return *mine;
}

}  // namespace

void* operator new(size_t bytes, const std::nothrow_t& /*tag*/) noexcept {
  ++OfThisThread().allocations;
  return std::malloc(bytes);
}
void* operator new(size_t bytes) {
  if (void* const memory = operator new(bytes, std::nothrow)) return memory;
  throw std::bad_alloc();
}
void* operator new[](size_t bytes) {
  return operator new(bytes);
}
void* operator new(size_t bytes, std::align_val_t alignment) {
  ++OfThisThread().allocations;
  const auto line = static_cast<size_t>(alignment);
  if (void* const memory = std::aligned_alloc(line, (bytes + line - 1) / line * line))
    return memory;
  throw std::bad_alloc();
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
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t /*alignment*/) noexcept {
  std::free(memory);
}
void operator delete(void* memory, size_t, std::align_val_t /*alignment*/) noexcept {
  operator delete(memory);
}

namespace muster {
namespace {

/// The count of the thread of this name; null: there is none, or it has asked for nothing yet.
const ThreadCount* CountOf(const std::string& name) {
  const ThreadCount* found = nullptr;
  DIR* const tasks = ::opendir("/proc/self/task");
  while (const dirent* const task = ::readdir(tasks)) {
    std::string comm;
    std::ifstream("/proc/self/task/" + std::string(task->d_name) + "/comm") >> comm;
    if (comm != name) continue;
    for (const ThreadCount& count : std::span(counts).first(threads)) {
      if (count.thread == std::atoi(task->d_name)) found = &count;
    }
  }
  ::closedir(tasks);
  return found;
}

class AllocationsTest : public SessionTest {
 protected:
  static constexpr uint32_t kMinibatches = 200;

  /// The requests of one minibatch, by thread.
  struct Taken {
    uint64_t by_trainer = 0;
    uint64_t by_data_thread = 0;
  };
  /// Figures of the second half of the minibatches of a shard, with so many keys each.
  std::vector<Taken> TakenWith(uint64_t keys_each) {
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
    const ThreadCount* data_thread = nullptr;
    std::vector<Taken> taken;
    taken.reserve(kMinibatches);
    while (std::optional<Shard> shard = session.NextShard()) {
      const auto now = [&] {
        if (data_thread == nullptr) data_thread = CountOf("muster-data");
        return Taken{OfThisThread().allocations,
                     data_thread == nullptr ? 0 : data_thread->allocations.load()};
      };
      Taken before = now();
      const auto prepare = [&](Minibatch& batch) { batch.Need(table, keys); };
      for (Minibatch& batch : shard->Minibatches(prepare)) {
        batch.Pull(table, keys);
        batch.Push(table, keys, gradients);
        batch.Commit();
        const Taken after = now();
        taken.push_back(
            {after.by_trainer - before.by_trainer, after.by_data_thread - before.by_data_thread});
        before = after;
      }
    }
    EXPECT_EQ(session.Finish(), 0);
    EXPECT_NE(data_thread, nullptr);
    EXPECT_EQ(taken.size(), kMinibatches);
    taken.erase(taken.begin(), taken.begin() + kMinibatches / 2);
    return taken;
  }
  /// How many of them made requests.
  static size_t HowMany(const std::vector<Taken>& taken, uint64_t Taken::* by) {
    return static_cast<size_t>(
        std::ranges::count_if(taken, [by](const Taken& one) { return one.*by > 0; }));
  }
};

TEST_F(AllocationsTest, AMinibatchTakesNoMemoryHoweverManyKeysItHas) {
  if (!sdk::kKeepsMemory) GTEST_SKIP() << "the address sanitizer looks after every allocation";
  for (const uint64_t keys : {64u, 10'000u}) {
    const std::vector<Taken> taken = TakenWith(keys);
    // Now and then more of them are in progress at a time than before.
    EXPECT_LE(HowMany(taken, &Taken::by_trainer), taken.size() / 10) << keys;
    EXPECT_LE(HowMany(taken, &Taken::by_data_thread), taken.size() / 10) << keys;
  }
}

}  // namespace
}  // namespace muster
