// A member of a synchronous group as a user writes it, whose steps are timed:
// benchmarks/group_flights.py runs jobs of it. Its gradients are trivial. What a minibatch takes,
// how large the bucket is and how large the state, is said on the command line; --help has the
// options.
//
// LOG/<node>-<pid>.steps gets a record for every try of a step, at its end: six int64, which are
// its number, the minibatches computed, and four times by CLOCK_MONOTONIC in nanoseconds: when it
// began, when the loop ended, when the master had committed it (0: it has not happened in this
// try), and when it was applied. The first record has the number 0: the trainer is about to ask for
// its first step.
#include <fcntl.h>
#include <muster/muster.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "benchmarks/thread_cpu.h"
#include "benchmarks/whole_number.h"

namespace muster {
namespace {

constexpr char kHelp[] =
    "Usage: group_member LOG [OPTION VALUE ...]\n\n"
    "Started by benchmarks/group_flights.py, by way of `muster run`.\n\n"
    "  --elements N  float32 numbers in all buckets together (default: 64)\n"
    "  --buckets N   buckets of about the same size (default: 1)\n"
    "  --state N     bytes of the state (default: 256)\n"
    "  --busy-us N   each minibatch computes for N microseconds of CPU time\n"
    "  --sleep-us N  each minibatch sleeps for N microseconds\n"
    "  --alone N     N steps of one minibatch, without a group and without a job\n";

constexpr uint64_t kElementsMax = uint64_t{1} << 30;
constexpr uint64_t kBucketsMax = 65'000;
constexpr uint64_t kStateMax = uint64_t{1} << 36;
constexpr uint64_t kMicrosecondsMax = 60'000'000;
constexpr uint64_t kStepsMax = 1'000'000;

struct Options {
  std::string log;
  uint64_t elements = 64;
  uint64_t buckets = 1;
  uint64_t state = 256;
  uint64_t busy_us = 0;
  uint64_t sleep_us = 0;
  uint64_t alone = 0;
};

[[noreturn]] void Die(const std::string& what) {
  std::fprintf(stderr, "group_member: %s\n", what.c_str());
  std::exit(2);
}

Options Parse(int argc, char** argv) {
  Options options;
  if (argc < 2 || std::string_view(argv[1]) == "--help") {
    std::fputs(kHelp, argc < 2 ? stderr : stdout);
    std::exit(argc < 2 ? 2 : 0);
  }
  options.log = argv[1];
  for (int i = 2; i < argc; i += 2) {
    const std::string name = argv[i];
    if (i + 1 == argc) Die(name + " needs a value");
    const auto number = [&](uint64_t max) {
      const std::optional<uint64_t> value = WholeNumber(argv[i + 1], max);
      if (!value.has_value()) {
        Die(name + " " + argv[i + 1] + ": it takes a whole number from 1 to " +
            std::to_string(max));
      }
      return *value;
    };
    if (name == "--elements") {
      options.elements = number(kElementsMax);
    } else if (name == "--buckets") {
      options.buckets = number(kBucketsMax);
    } else if (name == "--state") {
      options.state = number(kStateMax);
    } else if (name == "--busy-us") {
      options.busy_us = number(kMicrosecondsMax);
    } else if (name == "--sleep-us") {
      options.sleep_us = number(kMicrosecondsMax);
    } else if (name == "--alone") {
      options.alone = number(kStepsMax);
    } else {
      Die("what is " + name + "?");
    }
  }
  if (options.buckets > options.elements) Die("--buckets is at most --elements");
  return options;
}

/// The log of this process.
class StepLog {
 public:
  StepLog(const Options& options, const std::string& node)
      : path_(options.log + "/" + node + "-" + std::to_string(::getpid()) + ".steps"),
        fd_(::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644)) {
    if (fd_ < 0) Die("cannot write " + path_);
  }
  StepLog(const StepLog&) = delete;
  StepLog& operator=(const StepLog&) = delete;
  ~StepLog() { ::close(fd_); }

  struct Record {
    int64_t step = 0;
    int64_t minibatches = 0;
    int64_t begun_ns = 0;
    int64_t computed_ns = 0;
    int64_t committed_ns = 0;
    int64_t applied_ns = 0;
  };

  int64_t Now() const { return clock_.Now().time_since_epoch().count(); }
  /// At once, so that it outlives the process.
  void Add(const Record& record) {
    if (::write(fd_, &record, sizeof(record)) != sizeof(record)) Die("cannot write " + path_);
  }

 private:
  const SystemClock clock_;
  const std::string path_;
  const int fd_;
};

void Compute(const Options& options) {
  if (options.sleep_us > 0) SleepFor(std::chrono::microseconds(options.sleep_us));
  if (options.busy_us == 0) return;
  // The same work whoever else uses the processor.
  const auto end = ThreadCpu() + std::chrono::microseconds(options.busy_us);
  while (ThreadCpu() < end) {
  }
}

/// A bucket, which has the elements from `first` on.
struct Bucket {
  SumBucket handle;
  size_t first = 0;
  size_t elements = 0;
};

std::vector<Bucket> AddBuckets(const Options& options, Group* group) {
  std::vector<Bucket> buckets;
  size_t first = 0;
  for (uint64_t i = 0; i < options.buckets; ++i) {
    const size_t next = options.elements * (i + 1) / options.buckets;
    const SumBucket handle = group->AddBucket("gradients-" + std::to_string(i), next - first);
    buckets.push_back({handle, first, next - first});
    first = next;
  }
  return buckets;
}

/// The last layers first, as a backward pass does.
void AddGradients(std::span<const Bucket> buckets, std::span<const float> gradient,
                  GroupStep* step) {
  for (size_t i = buckets.size(); i-- > 0;) {
    step->Add(buckets[i].handle, gradient.subspan(buckets[i].first, buckets[i].elements));
  }
}

/// What the sum of a bucket changes. The rest of the state stays as it is, but is copied with it.
void Apply(std::span<const float> sum, size_t first, std::span<float> state) {
  if (first >= state.size()) return;
  const size_t count = std::min(sum.size(), state.size() - first);
  for (size_t i = 0; i < count; ++i) state[first + i] += sum[i];
}

int TrainAlone(const Options& options) {
  StepLog log(options, "alone");
  std::vector<float> state(options.state / sizeof(float));
  const std::vector<float> gradient(options.elements, 1.0F);
  for (uint64_t step = 1; step <= options.alone; ++step) {
    StepLog::Record record{.step = static_cast<int64_t>(step), .minibatches = 1};
    record.begun_ns = log.Now();
    Compute(options);
    record.computed_ns = record.committed_ns = log.Now();
    Apply(gradient, 0, state);
    record.applied_ns = log.Now();
    log.Add(record);
  }
  return 0;
}

int Train(const Options& options) {
  const SessionOptions own = SessionOptions::FromEnvironment();
  Result<Session> session = Session::Connect(own);
  if (!session.ok()) Die(session.status().message());
  Result<Group> group = session->Group();
  if (!group.ok()) Die(group.status().message());
  std::vector<float> state(options.state / sizeof(float));
  const std::vector<float> gradient(options.elements, 1.0F);
  const std::vector<Bucket> buckets = AddBuckets(options, &*group);
  group->AddState("state", std::span(state));
  StepLog log(options, own.worker_name);
  log.Add({.begun_ns = log.Now()});
  while (auto step = group->NextStep()) {
    StepLog::Record record{.step = static_cast<int64_t>(step->step()), .begun_ns = log.Now()};
    for (Minibatch& batch : step->Minibatches()) {
      Compute(options);
      if (!batch.evaluate()) AddGradients(buckets, gradient, &*step);
      ++record.minibatches;
    }
    record.computed_ns = log.Now();
    step->Commit([&] {
      record.committed_ns = log.Now();
      for (const Bucket& bucket : buckets) Apply(step->Sum(bucket.handle), bucket.first, state);
    });
    record.applied_ns = log.Now();
    log.Add(record);
  }
  return session->Finish();
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  const muster::Options options = muster::Parse(argc, argv);
  return options.alone > 0 ? muster::TrainAlone(options) : muster::Train(options);
}
