// How fast a store takes objects and gives them back, without what a server does with them: objects
// are published one after the other, and fetched four at a time, as servers do it. Prints MB/s
// written and MB/s fetched. One run. benchmarks/storage.py runs it beside curl.
//
//   store_bench [--smoke] PLACE [objects] [bytes of each]
#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "base/status.h"
#include "benchmarks/whole_number.h"
#include "store/object_store.h"

namespace muster {
namespace {

constexpr int kFetchers = 4;

struct Load {
  std::string place;
  uint64_t objects = 64;
  uint64_t bytes = 2 << 20;
};

std::string NameOfObject(uint64_t i) {
  return fmt::format("bench/{}", i);
}

absl::Status Publish(const Load& load, const std::string& bytes, ObjectStore* store) {
  for (uint64_t i = 0; i < load.objects; ++i) {
    MUSTER_ASSIGN_OR_RETURN(LocalFile staged, store->Stage(NameOfObject(i) + ".tmp"));
    std::ofstream(staged.path(), std::ios::binary) << bytes;
    MUSTER_RETURN_IF_ERROR(store->Publish(std::move(staged), NameOfObject(i)));
  }
  return absl::OkStatus();
}

bool Fetch(const Load& load, ObjectStore* store) {
  std::atomic<uint64_t> next{0};
  std::atomic<bool> failed{false};
  std::vector<std::thread> fetchers;
  for (int f = 0; f < kFetchers; ++f) {
    fetchers.emplace_back([&] {
      for (uint64_t i = next++; i < load.objects; i = next++) {
        const absl::StatusOr<LocalFile> file = store->Fetch(NameOfObject(i));
        if (file.ok()) continue;
        failed = true;
        fmt::print(stderr, "{}\n", Message(file.status()));
      }
    });
  }
  for (std::thread& fetcher : fetchers) fetcher.join();
  return !failed;
}

double MbPerSecond(const Load& load, TimePoint begin, TimePoint end) {
  const std::chrono::duration<double> seconds = end - begin;
  return static_cast<double>(load.objects * load.bytes) / 1e6 / seconds.count();
}

int Run(const Load& load) {
  const SystemClock clock;
  const absl::StatusOr<std::unique_ptr<ObjectStore>> store = OpenStore(load.place);
  Rng rng(1);
  std::string bytes(load.bytes, '\0');
  for (char& c : bytes) c = static_cast<char>(rng.Below(256));
  const TimePoint begin = clock.Now();
  const absl::Status published = store.ok() ? Publish(load, bytes, store->get()) : store.status();
  if (!published.ok()) {
    fmt::print(stderr, "store_bench: {}\n", Message(published));
    return 1;
  }
  const TimePoint middle = clock.Now();
  if (!Fetch(load, store->get())) return 1;
  fmt::print("{:.1f} {:.1f}\n", MbPerSecond(load, begin, middle),
             MbPerSecond(load, middle, clock.Now()));
  return 0;
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  muster::Load load;
  std::vector<std::string_view> arguments(argv + 1, argv + argc);
  if (std::erase(arguments, "--smoke") > 0) load.objects = 4;
  std::optional<uint64_t> numbers[] = {load.objects, load.bytes};
  for (size_t i = 1; i < arguments.size() && i <= 2; ++i) {
    numbers[i - 1] = muster::WholeNumber(arguments[i], uint64_t{1} << 32);
  }
  if (arguments.empty() || arguments.size() > 3 || !numbers[0] || !numbers[1]) {
    fmt::print(stderr, "usage: store_bench [--smoke] PLACE [objects] [bytes of each]\n");
    return 2;
  }
  load.place = arguments[0];
  load.objects = *numbers[0];
  load.bytes = *numbers[1];
  return muster::Run(load);
}
