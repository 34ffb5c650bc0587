// A worker whose result is known in advance. Every record adds whole numbers to a few tables under
// the Sum optimizer, so one lost or doubled minibatch shows in the exported weights. The worker
// writes down what it is about to push before it pushes it. verify/README.md has the details.

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

#include "cli/verify/slowness.h"
#include "verify/workload/contributions.h"
#include "verify/workload/group_state.h"
#include "verify/workload/history.h"

namespace muster::verify {
namespace {

constexpr char kHelp[] =
    "Usage: verify_worker [--slow-us MICROSECONDS] [--slow-while FILE] [--threads N]\n"
    "                     [--warm-start FOLDER] [--history FOLDER] [--at-sigterm leave|die]\n"
    "                     [--best-after RECORDS] [--group-records N --results FOLDER]\n\n"
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
    "                          records is from this one\n"
    "  --group-records N       a member of a synchronous group; an epoch has N records, the\n"
    "                          numbers from 0 to N - 1\n"
    "  --results FOLDER        of a member: where it writes its weights at the end\n"
    "  --leave-out NUMBER      of a member: that record adds nothing, to see that it is missed\n\n"
    "Example, in a job file: command: [./verify_worker, --slow-us, \"20000\"]\n";

struct Options {
  Slowness slowness;
  int64_t threads = 1;
  std::string warm_start;
  std::string history;
  bool leave_at_sigterm = false;
  std::optional<int64_t> best_after;
  uint64_t group_records = 0;  // 0: no group
  std::string results;
  std::optional<int64_t> leave_out;
};

/// A whole number from `low` to `high`. None if the text is anything else.
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
      options.slowness.while_file = value;
    } else if (name == "--history") {
      options.history = value;
    } else if (name == "--at-sigterm" && (value == "leave" || value == "die")) {
      options.leave_at_sigterm = value == "leave";
    } else if (name == "--best-after") {
      options.best_after = ParseNumber(value, 0, kIdMax);
      if (!options.best_after.has_value()) return std::nullopt;
    } else if (name == "--results") {
      options.results = value;
    } else if (name == "--group-records") {
      const auto number = ParseNumber(value, 1, kIdMax);
      if (!number.has_value()) return std::nullopt;
      options.group_records = static_cast<uint64_t>(*number);
    } else if (name == "--leave-out") {
      options.leave_out = ParseNumber(value, 0, kIdMax);
      if (!options.leave_out.has_value()) return std::nullopt;
    } else if (name == "--threads") {
      const auto number = ParseNumber(value, 1, 64);
      if (!number.has_value()) return std::nullopt;
      options.threads = *number;
    } else if (name == "--slow-us") {
      const auto number = ParseNumber(value, 0, Slowness::kMaxUs);
      if (!number.has_value()) return std::nullopt;
      options.slowness.each = std::chrono::microseconds(*number);
    } else {
      return std::nullopt;
    }
  }
  return options;
}

/// Waits in a minibatch, so that there is time for kills.
void BeSlow(const Options& options) {
  std::this_thread::sleep_for(WaitOf(options.slowness));
}

/// A file that is named after this process: FOLDER/worker-0-2.ENDING belongs to the second start of
/// worker-0.
std::string OwnFile(const std::string& folder, const std::string& ending) {
  const SessionOptions options = SessionOptions::FromEnvironment();
  return folder + "/" + options.worker_name + "-" + std::to_string(options.start) + ending;
}

/// The history of this process, which outlives the process: every line is passed to the kernel
/// before the worker continues. Thread-safe.
class HistoryFile {
 public:
  /// If `folder` is empty, nothing is written down.
  explicit HistoryFile(const std::string& folder) {
    if (folder.empty()) return;
    const std::string path = OwnFile(folder, ".history");
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
  /// Ends the process, because a minibatch that is not written down must not be pushed.
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

/// The number of a record. None if the text of a line is no such number.
std::optional<uint64_t> IdOf(const Minibatch& batch, size_t record) {
  const std::span<const int64_t> numbers = batch.record_numbers();
  if (numbers.empty()) return ParseId(batch.records()[record]);
  const auto id = static_cast<uint64_t>(numbers[record]);
  return id > kIdMax ? std::nullopt : std::optional(id);
}

Gradients GradientsOf(Minibatch& batch) {
  Gradients result;
  result.totals.assign(kTotalsSize, 0);
  for (size_t i = 0; i < batch.records().size(); ++i) {
    const std::optional<uint64_t> id = IdOf(batch, i);
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

/// Sums of whole numbers are whole, so any other value is damaged or invented.
bool AllWhole(Rows rows) {
  for (const float value : rows.values()) {
    if (value != std::nearbyint(value)) return false;
  }
  return true;
}

/// Reports metrics whose values are known in advance. One is the mean number of the records, which
/// is exact because the numbers are whole. The other, for an evaluate dataset, is the mean of the
/// records' rows of `ids`, which is 0 if no training record has their number. The first of the
/// totals counts the trained records.
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

struct GroupBuckets {
  SumBucket ids, mixed, curve;
};

/// Computes this member's minibatches of a step.
void ComputeShare(GroupStep& step, const GroupBuckets& buckets, const GroupState& state,
                  const Options& options, HistoryFile& history) {
  Attempt attempt{.shard = {"numbers", step.epoch(), step.step()}, .run = history.NextRun()};
  GroupGradients gradients(options.group_records);
  for (Minibatch& batch : step.Minibatches()) {
    gradients.Clear();
    attempt.ids.clear();
    for (size_t i = 0; i < batch.records().size(); ++i) {
      const std::optional<uint64_t> id = IdOf(batch, i);
      if (!id.has_value() || *id >= options.group_records) {
        batch.Reject(i, "not a whole number below " + std::to_string(options.group_records));
        continue;
      }
      attempt.ids.push_back(*id);
      batch.Metric("id", static_cast<double>(*id), 1);
      if (static_cast<int64_t>(*id) == options.leave_out) continue;
      gradients.Add(*id, step.epoch(), state.curve());
    }
    BeSlow(options);
    attempt.at_ns = HistoryFile::Now();
    attempt.step = batch.step();
    history.Write(FormatAttempt(attempt));
    step.Add(buckets.curve, gradients.curve);
    step.Add(buckets.ids, gradients.ids);
    step.Add(buckets.mixed, gradients.mixed);
  }
}

/// Writes the state for the checker, completely or not at all.
bool WriteResult(const GroupState& state, const std::string& folder) {
  const std::string path = OwnFile(folder, ".state");
  const std::string bytes = state.ToBytes();
  const std::string unfinished = path + ".unfinished";
  std::ofstream file(unfinished, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (file.good() && std::rename(unfinished.c_str(), path.c_str()) == 0) return true;
  std::fprintf(stderr, "verify_worker: %s: %s\n", path.c_str(), std::strerror(errno));
  return false;
}

int TrainInGroup(Session& session, const Options& options, HistoryFile& history) {
  GroupState state(options.group_records);
  {
    Result<Group> made = session.Group();
    if (!made.ok()) {
      std::fprintf(stderr, "verify_worker: %s\n", made.status().message().c_str());
      return 1;
    }
    Group group = std::move(made).value();
    group.AddState("ids", state.ids());
    group.AddState("mixed", state.mixed());
    group.AddState("curve", state.curve());
    group.AddState("steps", state.steps());
    const GroupBuckets buckets{.ids = group.AddBucket("sum/ids", state.ids().size()),
                               .mixed = group.AddBucket("sum/mixed", state.mixed().size()),
                               .curve = group.AddBucket("sum/curve", state.curve().size())};
    while (auto step = group.NextStep()) {
      ComputeShare(*step, buckets, state, options, history);
      step->Commit([&] {
        ApplySums({.ids = step->Sum(buckets.ids),
                   .mixed = step->Sum(buckets.mixed),
                   .curve = step->Sum(buckets.curve)},
                  step->records(), &state);
        history.Write(FormatApplied({HistoryFile::Now(), step->step(), state.Digest()}));
      });
    }
  }
  const int code = session.Finish();
  if (code != 0 || options.results.empty()) return code;
  return WriteResult(state, options.results) ? 0 : 1;
}

/// Takes SIGTERM in a thread of its own, because a signal handler must not call the session.
class TermSignal {
 public:
  /// Make it before any other thread, because threads inherit that the signal is blocked.
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
  if (options->group_records > 0) return TrainInGroup(session, *options, history);
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
