// What exactly-once costs a push in the partition engine: parts with the rules of the window
// (Partition::Apply) and the same parts with none (the table's own checks and its update), in turns
// on the very same rows. --help says more. The figures are one line of JSON on stdout.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "base/status.h"
#include "benchmarks/key_file.h"
#include "benchmarks/thread_cpu.h"
#include "ps/engine/partition.h"
#include "ps/engine/push_ahead.h"
#include "ps/engine/table.h"
#include "sharding/partition_of.h"

namespace muster::ps {
namespace {

constexpr char kHelp[] =
    "Usage: push_tax FILE DIM PARTITIONS MINIBATCHES SECONDS\n\n"
    "Pushes the calls of a file of keys (speed_limits keys) into PARTITIONS partitions, rows of\n"
    "DIM float32 with Adagrad, on one thread, for about SECONDS and until the window\n"
    "has forgotten something:\n\n"
    "  with     floor and window are asked, and the minibatch enters the window: as a server does\n"
    "  without  sizes and values are checked and rows updated, and nothing else\n\n"
    "Each takes some calls, then the other one the same calls; who begins changes from pair to\n"
    "pair. The window holds MINIBATCHES after a snapshot, and twice as many before the next one\n"
    "forgets the older half. JSON: CPU nanoseconds a row of every pair, and those of forgetting,\n"
    "which come on top of `with`.\n\n"
    "Example: speed_limits keys /tmp/keys 1000000 10000 64 0.99 && push_tax /tmp/keys 64 256 5000 "
    "5\n";

constexpr uint64_t kRowsATurn = 500'000;
constexpr uint64_t kMinibatchesAShard = 16;  // the default of a job
constexpr TableId kTable{1};

/// Keys of one call, grouped by partition, unique: as a worker sends them.
struct Call {
  struct Keys {
    uint32_t partition;
    size_t begin;
    size_t count;
  };
  std::vector<uint64_t> keys;
  std::vector<Keys> parts;

  std::span<const uint64_t> KeysOf(const Keys& part) const {
    return std::span(keys).subspan(part.begin, part.count);
  }
};

Call CallOf(std::span<const uint64_t> keys, uint32_t partitions) {
  std::vector<uint64_t> unique(keys.begin(), keys.end());
  std::ranges::sort(unique);
  unique.erase(std::unique(unique.begin(), unique.end()), unique.end());
  Rng rng(1);
  for (size_t i = unique.size(); i > 1; --i) std::swap(unique[i - 1], unique[rng.Below(i)]);
  std::vector<std::vector<uint64_t>> parts(partitions);
  for (const uint64_t key : unique) {
    parts[PartitionOf(kTable, key, partitions).value()].push_back(key);
  }
  Call call;
  for (uint32_t p = 0; p < partitions; ++p) {
    if (parts[p].empty()) continue;
    call.parts.push_back({p, call.keys.size(), parts[p].size()});
    call.keys.insert(call.keys.end(), parts[p].begin(), parts[p].end());
  }
  return call;
}

enum class Rules { kExactlyOnce, kNone };

/// Partitions with every row of the calls, and a window.
class Server {
 public:
  Server(const KeySequence& keys, uint32_t dim, uint32_t partitions, uint64_t kept_minibatches)
      : dim_(dim), kept_minibatches_(kept_minibatches), gradients_(keys.keys_a_call * dim, 0.01f) {
    TableSpec spec;
    spec.id = kTable;
    spec.name = "tax";
    spec.dim = dim;
    spec.optimizer = AdagradSpec{};
    for (uint32_t p = 0; p < partitions; ++p) {
      partitions_.push_back(std::make_unique<Partition>(PartitionId(p), 1));
      auto table = std::make_unique<Table>(spec, 1);
      tables_.push_back(table.get());
      partitions_[p]->AdoptTable(std::move(table));
    }
    for (uint64_t row = 0; row < keys.rows; ++row) {
      const uint64_t key[] = {row};
      const PartGroup group{kTable, key, std::span(gradients_).first(dim)};
      Plainly(PartitionOf(kTable, row, partitions).value(), group);
    }
  }

  /// Every call is a minibatch.
  void Push(const Call& call, Rules rules) {
    if (rules == Rules::kExactlyOnce) ++minibatch_;
    size_t next = 0;
    ahead_.Clear();
    for (const Call::Keys& part : call.parts) {
      for (; next < call.parts.size() && ahead_.wants_more(); ++next) {
        const Partition& partition = *partitions_[call.parts[next].partition];
        if (rules == Rules::kExactlyOnce) partition.PrefetchWindow(ShardOfMinibatch());
        ahead_.Expect(partition.FindTable(kTable), call.KeysOf(call.parts[next]));
      }
      ahead_.FindRows();
      const PartGroup group{kTable, call.KeysOf(part),
                            std::span(gradients_).first(part.count * dim_)};
      if (rules == Rules::kExactlyOnce) {
        Once(part.partition, group);
      } else {
        Plainly(part.partition, group);
      }
      ahead_.Pass(part.count);
    }
  }

  /// As after an accepted snapshot, when the window has twice what it keeps; returns how many
  /// minibatches are forgotten, 0 when it is too early.
  uint64_t ForgetWhenDue() {
    if (minibatch_ - forgotten_ < 2 * kept_minibatches_) return 0;
    ForgetState state;
    state.shards[{DatasetId(0), EpochIndex(0)}].Add(
        0, (minibatch_ - kept_minibatches_) / kMinibatchesAShard);
    for (const auto& partition : partitions_) partition->Forget(state);
    return minibatch_ - kept_minibatches_ -
           std::exchange(forgotten_, minibatch_ - kept_minibatches_);
  }
  size_t shards_in_window() const { return partitions_.front()->sizes().window_shards; }

 private:
  ShardId ShardOfMinibatch() const {
    return {DatasetId(0), EpochIndex(0), ShardIndex(minibatch_ / kMinibatchesAShard)};
  }
  void Once(uint32_t p, const PartGroup& group) {
    part_.shard = ShardOfMinibatch();
    part_.minibatch = MinibatchIndex(static_cast<uint32_t>(minibatch_ % kMinibatchesAShard));
    part_.groups.assign(1, group);
    if (partitions_[p]->Apply(part_).code != ApplyCode::kApplied) std::abort();
  }
  /// What Partition::Apply does with a group, and nothing that has to do with its minibatch.
  void Plainly(uint32_t p, const PartGroup& group) {
    part_.groups.assign(1, group);
    Table* const table = tables_[p];
    if (partitions_[p]->FindTable(group.table) != table ||
        group.gradients.size() != group.keys.size() * table->dim() ||
        !table->CheckRoom(group.keys.size()).ok() ||
        !table->CheckPush(group.keys, group.gradients).ok()) {
      std::abort();
    }
    WorkLimit work = WorkLimit::None();
    for (size_t row = 0; row < group.keys.size();) {
      row += table->Apply(group.keys.subspan(row), group.gradients.subspan(row * table->dim()),
                          part_.step, &work);
    }
  }

  const uint32_t dim_;
  const uint64_t kept_minibatches_;
  const std::vector<float> gradients_;
  std::vector<std::unique_ptr<Partition>> partitions_;
  std::vector<Table*> tables_;  // of the partitions
  PushAhead ahead_;
  Part part_{.token = LeaseToken(MasterIncarnation(1), 1)};
  uint64_t minibatch_ = 0;
  uint64_t forgotten_ = 0;  // minibatches before this one
};

/// CPU nanoseconds a row.
struct Pair {
  double with = 0;
  double without = 0;
};

/// Calls are pushed with the rules, then without, some at a time, and timed.
class Turns {
 public:
  Turns(Server* server, std::vector<Call> calls) : server_(server), calls_(std::move(calls)) {
    uint64_t rows = 0;
    for (const Call& call : calls_) rows += call.keys.size();
    a_turn_ = std::max<uint64_t>(1, kRowsATurn * calls_.size() / rows);
    rows_a_call_ = static_cast<double>(rows) / static_cast<double>(calls_.size());
  }

  /// The window becomes as large as it is to be.
  void WarmUp() {
    while (server_->ForgetWhenDue() == 0) Turn(Rules::kExactlyOnce);
    Turn(Rules::kNone);
  }
  void Take() {
    Pair pair;
    const bool with_first = pairs_.size() % 2 == 0;
    if (with_first) pair.with = Turn(Rules::kExactlyOnce);
    pair.without = Turn(Rules::kNone);
    if (!with_first) pair.with = Turn(Rules::kExactlyOnce);
    pairs_.push_back(pair);
    next_ += a_turn_;
    const double began = ThreadCpuSeconds();
    if (const uint64_t minibatches = server_->ForgetWhenDue(); minibatches > 0) {
      forgetting_.push_back(1e9 * (ThreadCpuSeconds() - began) /
                            (static_cast<double>(minibatches) * rows_a_call_));
    }
  }
  const std::vector<Pair>& pairs() const { return pairs_; }
  const std::vector<double>& forgetting() const { return forgetting_; }
  double rows_a_call() const { return rows_a_call_; }

 private:
  double Turn(Rules rules) {
    uint64_t rows = 0;
    const double began = ThreadCpuSeconds();
    for (uint64_t i = 0; i < a_turn_; ++i) {
      const Call& call = calls_[(next_ + i) % calls_.size()];
      server_->Push(call, rules);
      rows += call.keys.size();
    }
    return 1e9 * (ThreadCpuSeconds() - began) / static_cast<double>(rows);
  }

  Server* const server_;
  const std::vector<Call> calls_;
  uint64_t a_turn_ = 0;  // calls
  double rows_a_call_ = 0;
  uint64_t next_ = 0;
  std::vector<Pair> pairs_;
  std::vector<double> forgetting_;  // CPU nanoseconds for each row that was pushed meanwhile
};

template <typename Values, typename Of>
std::string List(const Values& values, Of&& of) {
  std::string text;
  for (const auto& value : values)
    text += fmt::format("{}{:.3f}", text.empty() ? "" : ", ", of(value));
  return "[" + text + "]";
}

struct Load {
  uint32_t dim;
  uint32_t partitions;
  uint64_t kept_minibatches;
  double seconds;
};

int Measure(const KeySequence& keys, const Load& load) {
  const auto& [dim, partitions, kept_minibatches, seconds] = load;
  Server server(keys, dim, partitions, kept_minibatches);
  std::vector<Call> calls;
  for (uint64_t i = 0; i < keys.calls(); ++i) calls.push_back(CallOf(keys.Call(i), partitions));
  size_t parts = 0;
  for (const Call& call : calls) parts += call.parts.size();
  const double parts_a_call = static_cast<double>(parts) / static_cast<double>(calls.size());
  Turns turns(&server, std::move(calls));
  turns.WarmUp();
  const SystemClock clock;
  const TimePoint end = clock.Now() + std::chrono::duration_cast<std::chrono::nanoseconds>(
                                          std::chrono::duration<double>(seconds));
  do {
    turns.Take();
  } while (clock.Now() < end || turns.pairs().size() % 2 != 0 || turns.forgetting().empty());
  fmt::print(
      "{{\"with_ns\": {}, \"without_ns\": {}, \"forgetting_ns\": {}, \"rows_a_part\": {:.3f}, "
      "\"shards_in_window\": {}}}\n",
      List(turns.pairs(), [](const Pair& pair) { return pair.with; }),
      List(turns.pairs(), [](const Pair& pair) { return pair.without; }),
      List(turns.forgetting(), [](double value) { return value; }),
      turns.rows_a_call() / parts_a_call, server.shards_in_window());
  return 0;
}

template <typename Value>
std::optional<Value> Number(std::string_view text, Value most) {
  Value number = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool all = code == std::errc() && end == text.data() + text.size();
  return all && number > 0 && number <= most ? std::optional(number) : std::nullopt;
}

int Main(std::span<char*> arguments) {
  if (arguments.size() == 2 && arguments[1] == std::string_view("--help")) {
    std::fputs(kHelp, stdout);
    return 0;
  }
  if (arguments.size() == 6) {
    const auto dim = Number<uint32_t>(arguments[2], 65'536);
    const auto partitions = Number<uint32_t>(arguments[3], 65'536);
    const auto kept = Number<uint64_t>(arguments[4], 10'000'000);
    const auto seconds = Number<double>(arguments[5], 600);
    if (dim && partitions && kept && seconds) {
      const auto keys = ReadKeyFile(arguments[1]);
      if (keys.ok()) return Measure(*keys, {*dim, *partitions, *kept, *seconds});
      fmt::print(stderr, "push_tax: {}\n", Message(keys.status()));
      return 1;
    }
  }
  std::fputs(kHelp, stderr);
  return 2;
}

}  // namespace
}  // namespace muster::ps

int main(int count, char** arguments) {
  return muster::ps::Main({arguments, static_cast<size_t>(count)});
}
