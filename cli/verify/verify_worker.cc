// A worker whose result is known beforehand: every record adds whole numbers to a few tables under
// the Sum optimizer, so that one lost or doubled minibatch shows in the exported weights. What it
// is about to push it writes down first. verify/README.md has the whole story.

#include <fcntl.h>
#include <muster/muster.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "verify/workload/contributions.h"
#include "verify/workload/history.h"

namespace muster::verify {
namespace {

constexpr char kHelp[] =
    "Usage: verify_worker [--slow-us MICROSECONDS] [--slow-while FILE] [--threads N]\n"
    "                     [--warm-start FOLDER] [--history FOLDER] [--at-sigterm leave|die]\n"
    "                     [--best-after RECORDS]\n\n"
    "The worker of `muster verify`; a job of whole numbers can also be run with it by hand.\n\n"
    "  --slow-us MICROSECONDS  every minibatch takes that much longer: time to kill something\n"
    "  --slow-while FILE       only while that file exists: remove it, and the job runs to its\n"
    "                          end; a number in it counts instead of MICROSECONDS\n"
    "  --threads N             threads that run shards of their own, 1 to 64; 1 unless said\n"
    "  --warm-start FOLDER     an export that the tables start from\n"
    "  --history FOLDER        a file in it has a line for every minibatch, before it is pushed\n"
    "  --at-sigterm leave|die  leave: finish what is in the loops and hand back the rest, as at "
    "an\n"
    "                          eviction; die unless said\n"
    "  --best-after RECORDS    an evaluation reports a loss: how far the number of trained\n"
    "                          records is from this one\n\n"
    "Example, in a job file: command: [./verify_worker, --slow-us, \"20000\"]\n";

constexpr int64_t kSlowMaxUs = 1'000'000'000;

struct Options {
  std::chrono::microseconds slow{0};
  std::string slow_while;
  int64_t threads = 1;
  std::string warm_start;
  std::string history;
  bool leave_at_sigterm = false;
  std::optional<int64_t> best_after;
};

/// A whole number from `low` to `high`; nothing when the text is not that.
std::optional<int64_t> ParseNumber(std::string_view text, int64_t low, int64_t high) {
  int64_t number = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (code != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (number < low || number > high) return std::nullopt;
  return number;
}

std::optional<Options> ParseOptions(std::span<char*> arguments) {
  Options options;
  if (arguments.size() % 2 != 0) return std::nullopt;
  for (size_t i = 0; i < arguments.size(); i += 2) {
    const std::string_view name = arguments[i];
    const std::string_view value = arguments[i + 1];
    if (name == "--warm-start") {
      options.warm_start = value;
    } else if (name == "--slow-while") {
      options.slow_while = value;
    } else if (name == "--history") {
      options.history = value;
    } else if (name == "--at-sigterm" && (value == "leave" || value == "die")) {
      options.leave_at_sigterm = value == "leave";
    } else if (name == "--best-after") {
      options.best_after = ParseNumber(value, 0, kSlowMaxUs);
      if (!options.best_after.has_value()) return std::nullopt;
    } else if (name == "--threads") {
      const auto number = ParseNumber(value, 1, 64);
      if (!number.has_value()) return std::nullopt;
      options.threads = *number;
    } else if (name == "--slow-us") {
      const auto number = ParseNumber(value, 0, kSlowMaxUs);
      if (!number.has_value()) return std::nullopt;
      options.slow = std::chrono::microseconds(*number);
    } else {
      return std::nullopt;
    }
  }
  return options;
}

/// Extra time of a minibatch, so that there is time for kills.
void BeSlow(const Options& options) {
  std::chrono::microseconds slow = options.slow;
  if (!options.slow_while.empty()) {
    std::ifstream file(options.slow_while);
    if (!file.is_open()) return;
    std::string text;
    file >> text;
    if (const auto number = ParseNumber(text, 0, kSlowMaxUs)) {
      slow = std::chrono::microseconds(*number);
    }
  }
  std::this_thread::sleep_for(slow);
}

/// The history of this process, which outlives it: every line is written to the kernel before the
/// worker continues. Thread-safe.
class HistoryFile {
 public:
  /// `folder` empty: nothing is written down.
  explicit HistoryFile(const std::string& folder) {
    if (folder.empty()) return;
    const SessionOptions options = SessionOptions::FromEnvironment();
    const std::string path =
        folder + "/" + options.worker_name + "-" + std::to_string(options.start) + ".history";
    fd_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fd_ < 0) Die(path);
  }
  HistoryFile(const HistoryFile&) = delete;
  HistoryFile& operator=(const HistoryFile&) = delete;
  ~HistoryFile() {
    if (fd_ >= 0) ::close(fd_);
  }

  uint64_t NextRun() { return ++runs_; }
  void Write(const std::string& line) const {
    if (fd_ < 0) return;
    if (::write(fd_, line.data(), line.size()) != static_cast<ssize_t>(line.size())) Die("history");
  }
  static uint64_t Now() {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
  }

 private:
  /// A minibatch that is not written down must not be pushed.
  [[noreturn]] static void Die(const std::string& what) {
    std::fprintf(stderr, "verify_worker: %s: %s\n", what.c_str(), std::strerror(errno));
    std::_Exit(1);
  }

  int fd_ = -1;
  std::atomic<uint64_t> runs_{0};
};

struct Tables {
  Table ids;
  Table buckets;
  Table wide;
  DenseTensor totals;
};

Tables Register(Session& session, const std::string& warm_start) {
  return {session.SparseTable(
              {.name = "ids", .dim = kIdsDim, .optimizer = Sum{}, .warm_start = warm_start}),
          session.SparseTable({.name = "buckets",
                               .dim = kBucketsDim,
                               .optimizer = Sum{},
                               .initializer = Constant{.value = kBucketsInitial},
                               .warm_start = warm_start}),
          session.SparseTable(
              {.name = "wide", .dim = kWideDim, .optimizer = Sum{}, .warm_start = warm_start}),
          session.DenseTable({.name = "totals",
                              .shape = {kTotalsRows, kTotalsColumns},
                              .optimizer = Sum{},
                              .warm_start = warm_start})};
}

/// The gradients of one minibatch.
struct Gradients {
  std::vector<uint64_t> ids_keys, buckets_keys, wide_keys;
  std::vector<float> ids, buckets, wide, totals;
};

Gradients GradientsOf(Minibatch& batch) {
  Gradients result;
  result.totals.assign(kTotalsSize, 0);
  for (size_t i = 0; i < batch.records().size(); ++i) {
    const std::optional<uint64_t> id = ParseId(batch.records()[i]);
    if (!id.has_value()) {
      batch.Reject(i, "not a whole number from 0 to 1000000000");
      continue;
    }
    const Contribution added = ContributionOf(*id, batch.epoch());
    result.ids_keys.push_back(*id);
    result.buckets_keys.push_back(added.bucket_key);
    result.wide_keys.push_back(added.wide_key);
    result.ids.insert(result.ids.end(), added.ids.begin(), added.ids.end());
    result.buckets.insert(result.buckets.end(), added.buckets.begin(), added.buckets.end());
    result.wide.insert(result.wide.end(), added.wide.begin(), added.wide.end());
    for (size_t j = 0; j < kTotalsSize; ++j) result.totals[j] += added.totals[j];
  }
  return result;
}

/// Sums of whole numbers are whole numbers, so any other value is damaged or invented.
bool AllWhole(Rows rows) {
  for (const float value : rows.values()) {
    if (value != std::nearbyint(value)) return false;
  }
  return true;
}

/// What is known of the records beforehand: their mean number, of whole numbers, hence exact; and
/// of an evaluate dataset the mean of their rows of `ids`, 0 when no training record has their
/// number. The first of the totals counts the records that were trained.
void ReportMetrics(Minibatch& batch, const Tables& tables, const Gradients& gradients,
                   const Options& options) {
  for (const uint64_t id : gradients.ids_keys) batch.Metric("id", static_cast<double>(id), 1);
  if (!batch.evaluate()) return;
  const Rows rows = batch.Pull(tables.ids, gradients.ids_keys);
  for (const float value : rows.values()) batch.Metric("ids_row", value, 1);
  if (!options.best_after.has_value()) return;
  const double trained = batch.Pull(tables.totals).values()[0];
  batch.Metric("loss", std::abs(trained - static_cast<double>(*options.best_after)), 1);
}

void Run(Shard& shard, const Tables& tables, const Options& options, HistoryFile& history) {
  Attempt attempt{.run = history.NextRun()};
  if (!ParseShardName(shard.id(), &attempt.shard)) {
    shard.Fail("its id is not dataset/epoch/index: " + shard.id());
    return;
  }
  if (!shard.evaluate()) {
    history.Write(FormatBegin({HistoryFile::Now(), attempt.shard, attempt.run}));
  }
  const auto prepare = [&tables](Minibatch& batch) {
    Gradients gradients = GradientsOf(batch);
    if (batch.evaluate()) batch.Need(tables.ids, gradients.ids_keys);
    batch.Need(tables.buckets, gradients.buckets_keys);
    batch.Need(tables.totals);
    batch.user_data() = std::move(gradients);
  };
  for (Minibatch& batch : shard.Minibatches(prepare)) {
    const auto& gradients = std::any_cast<const Gradients&>(batch.user_data());
    if (!AllWhole(batch.Pull(tables.buckets, gradients.buckets_keys)) ||
        !AllWhole(batch.Pull(tables.totals))) {
      shard.Fail("a pulled row is not made of whole numbers");
      return;
    }
    BeSlow(options);
    if (!batch.evaluate()) {
      attempt.at_ns = HistoryFile::Now();
      attempt.step = batch.step();
      attempt.ids = gradients.ids_keys;
      history.Write(FormatAttempt(attempt));
    }
    if (!batch.evaluate() && !gradients.ids_keys.empty()) {
      batch.Push(tables.ids, gradients.ids_keys, gradients.ids);
      batch.Push(tables.buckets, gradients.buckets_keys, gradients.buckets);
      batch.Push(tables.wide, gradients.wide_keys, gradients.wide);
      batch.Push(tables.totals, gradients.totals);
    }
    ReportMetrics(batch, tables, gradients, options);
    batch.Commit();
  }
  if (shard.evaluate()) return;
  history.Write(FormatFinish({HistoryFile::Now(), attempt.shard, attempt.run}));
}

/// SIGTERM, taken by a thread of its own: a signal handler may not call the session.
class TermSignal {
 public:
  /// Before any other thread is made: they inherit that it is blocked.
  TermSignal() {
    sigemptyset(&set_);
    sigaddset(&set_, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &set_, nullptr);
  }
  void LeaveOn(Session* session) {
    thread_ = std::jthread([this, session](const std::stop_token& over) {
      const timespec timeout{0, 100'000'000};
      while (!over.stop_requested()) {
        if (sigtimedwait(&set_, nullptr, &timeout) > 0) return session->Leave();
      }
    });
  }

 private:
  sigset_t set_;
  std::jthread thread_;
};

int Main(std::span<char*> arguments) {
  const std::optional<Options> options = ParseOptions(arguments);
  if (!options.has_value()) {
    std::fputs(kHelp, stderr);
    return 2;
  }
  std::optional<TermSignal> term;
  if (options->leave_at_sigterm) term.emplace();
  HistoryFile history(options->history);
  Session session = Session::Connect(SessionOptions::FromEnvironment()).value();
  if (term.has_value()) term->LeaveOn(&session);
  const Tables tables = Register(session, options->warm_start);
  {
    std::vector<std::jthread> threads;
    for (int64_t i = 0; i < options->threads; ++i) {
      threads.emplace_back([&] {
        while (auto shard = session.NextShard()) Run(*shard, tables, *options, history);
      });
    }
  }
  term.reset();
  return session.Finish();
}

}  // namespace
}  // namespace muster::verify

int main(int argc, char** argv) {
  return muster::verify::Main(std::span(argv, static_cast<size_t>(argc)).subspan(argc > 0 ? 1 : 0));
}
