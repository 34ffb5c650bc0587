// A worker as a user writes it, whose rate is taken: benchmarks/speed.py runs jobs of it. What it
// does in a minibatch (or, with `lease`, that it does nothing) is its mode; --help lists them.
//
// All workers of a job measure at the same time. When one is warm it makes FOLDER/<node>.ready; who
// runs the job then writes "<begin> <end>", CLOCK_MONOTONIC in nanoseconds, to FOLDER/window; after
// that time, the worker writes its figures to FOLDER/<node>.json, and continues until it is ended.
// Beside them FOLDER/<node>.steps has every step: its end, by the same clock, and its latency, as
// two int64 in nanoseconds.
#include <muster/muster.h>
#include <sys/resource.h>

#include <algorithm>
#include <any>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/file.h"
#include "benchmarks/key_file.h"
#include "benchmarks/whole_number.h"

namespace muster {
namespace {

constexpr char kHelp[] =
    "Usage: speed_trainer MODE FOLDER [KEYS DIM TABLES | ELEMENTS TENSORS]\n\n"
    "Started by benchmarks/speed.py, by way of `muster run`.\n\n"
    "  pull FOLDER KEYS DIM TABLES  asks ahead for the rows of the next call of the file KEYS, "
    "which\n"
    "                               are in so many tables\n"
    "  pull-push ...                and pushes a gradient to each of them (Adagrad)\n"
    "  small ...                    asks for rows and waits for them, nothing ahead\n"
    "  small-push ...               and pushes a gradient to each of them\n"
    "  dense FOLDER ELEMENTS TENSORS  pulls and pushes so many tensors, which have so many "
    "elements\n"
    "                               together (Adagrad)\n"
    "  read FOLDER                  goes over the records\n"
    "  lease FOLDER                 does nothing: as many shards as it gets\n";

constexpr uint64_t kTablesMax = 1'024;  // of a job
constexpr uint64_t kFillKeys = 10'000;  // a minibatch, while the table is filled
// So many pulls may have been asked for before the last push that fills the table has arrived.
constexpr uint64_t kPullsBeforeFilled = 32;
constexpr float kGradient = 0.01f;
constexpr auto kWarmUp = std::chrono::milliseconds(500);  // at least, after the table is filled
constexpr auto kLookForWindow = std::chrono::milliseconds(5);

[[noreturn]] void Die(const std::string& what) {
  std::fprintf(stderr, "speed_trainer: %s\n", what.c_str());
  std::exit(1);
}

double Seconds(std::chrono::nanoseconds duration) {
  return std::chrono::duration<double>(duration).count();
}

double CpuSeconds(const rusage& usage) {
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

rusage Usage() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage;
}

/// What one step brought.
struct Step {
  uint64_t rows = 0;
  uint64_t records = 0;
  uint64_t bytes = 0;
  std::chrono::nanoseconds waited{0};  // what its latency is, by mode
};

/// Counts steps while the window is open, and writes the figures when it is closed.
class Meter {
 public:
  explicit Meter(const std::string& folder)
      : window_(folder + "/window"),
        own_(folder + "/" + SessionOptions::FromEnvironment().worker_name) {}

  TimePoint Now() const { return clock_.Now(); }

  /// A step that ends now.
  void Count(const Step& step) {
    const TimePoint now = Now();
    if (phase_ == Phase::kWarm) {
      if (!warm_since_) warm_since_ = now;
      if (now - *warm_since_ < kWarmUp) return;
      Must(WriteFileAtomically(own_ + ".ready", "\n"));
      phase_ = Phase::kWaiting;
    } else if (phase_ == Phase::kWaiting) {
      LookForWindow(now);
    } else if (phase_ == Phase::kMeasuring) {
      total_.rows += step.rows;
      total_.records += step.records;
      total_.bytes += step.bytes;
      steps_.push_back({now.time_since_epoch().count(), step.waited.count()});
      if (now >= end_) Write(now);
    }
  }

 private:
  enum class Phase { kWarm, kWaiting, kMeasuring, kOver };

  static void Must(const absl::Status& status) {
    if (!status.ok()) Die(status.ToString());
  }

  void LookForWindow(TimePoint now) {
    if (end_ == TimePoint{} && now >= look_at_) {
      look_at_ = now + kLookForWindow;
      int64_t begin = 0, end = 0;
      if (std::ifstream file(window_); !(file >> begin >> end)) return;
      begin_ = TimePoint(std::chrono::nanoseconds(begin));
      end_ = TimePoint(std::chrono::nanoseconds(end));
    }
    if (end_ == TimePoint{} || now < begin_) return;
    phase_ = Phase::kMeasuring;
    begin_ = now;
    usage_ = Usage();
    steps_.reserve(1 << 20);
  }

  struct Ended {
    int64_t at_ns;
    int64_t waited_ns;
  };

  void Write(TimePoint now) {
    phase_ = Phase::kOver;
    const rusage usage = Usage();
    const auto* bytes = reinterpret_cast<const char*>(steps_.data());
    Must(WriteFileAtomically(own_ + ".steps",
                             std::string_view(bytes, steps_.size() * sizeof(Ended))));
    std::ranges::sort(steps_, {}, &Ended::waited_ns);
    const auto quantile_us = [&](double q) {
      const auto index = static_cast<size_t>(q * static_cast<double>(steps_.size()));
      return 1e-3 * static_cast<double>(steps_[std::min(index, steps_.size() - 1)].waited_ns);
    };
    char text[512];
    std::snprintf(text, sizeof(text),
                  "{\"seconds\": %.6f, \"steps\": %zu, \"rows\": %llu, \"records\": %llu, "
                  "\"bytes\": %llu, \"p50_us\": %.2f, \"p99_us\": %.2f, \"max_us\": %.2f, "
                  "\"cpu_seconds\": %.6f, \"memory_max_bytes\": %lld}\n",
                  Seconds(now - begin_), steps_.size(),
                  static_cast<unsigned long long>(total_.rows),
                  static_cast<unsigned long long>(total_.records),
                  static_cast<unsigned long long>(total_.bytes), quantile_us(0.5),
                  quantile_us(0.99), quantile_us(1), CpuSeconds(usage) - CpuSeconds(usage_),
                  static_cast<long long>(usage.ru_maxrss) * 1024);
    Must(WriteFileAtomically(own_ + ".json", text));
  }

  const SystemClock clock_;
  const std::string window_;
  const std::string own_;  // path of what this worker writes, without its ending
  Phase phase_ = Phase::kWarm;
  std::optional<TimePoint> warm_since_;
  TimePoint look_at_{}, begin_{}, end_{};
  rusage usage_{};
  Step total_;
  std::vector<Ended> steps_;
};

/// Values as of a model: no two alike, so that a snapshot of them cannot be packed to nothing.
std::vector<float> Gradients(size_t count) {
  std::mt19937 random(7);
  std::vector<float> gradients(count);
  for (float& gradient : gradients) {
    gradient = kGradient * (0.5f + static_cast<float>(random()) / static_cast<float>(random.max()));
  }
  return gradients;
}

/// Steps that pull, and perhaps push, rows of some tables. The first minibatches fill them.
class SparseSteps {
 public:
  enum class Ahead { kNothing, kPrefetch };
  enum class Push { kNothing, kGradients };

  SparseSteps(Session* session, const KeySequence& keys, uint32_t dim, uint64_t tables, Ahead ahead,
              Push push)
      : rows_(keys.rows),
        calls_(keys, tables),
        ahead_(ahead),
        push_(push),
        gradients_(Gradients(std::max(keys.keys_a_call, kFillKeys) * dim)) {
    for (uint64_t table = 0; table < tables; ++table) {
      tables_.push_back(session->SparseTable(
          {.name = "embedding-" + std::to_string(table),
           .dim = dim,
           .optimizer = Adagrad{.learning_rate = 0.05f, .initial_accumulator = 0.1f}}));
    }
  }

  void Run(Shard* shard, Meter* meter) {
    const auto prepare = [this](Minibatch& batch) {
      if (filled_ < rows_) {
        batch.user_data() = Fill{filled_};
        filled_ += kFillKeys;
        return;
      }
      const uint64_t call = next_call_++;
      batch.user_data() = call;
      if (ahead_ == Ahead::kNothing) return;
      ForEachTable(call, [&](const Table& table, std::span<const uint64_t> rows) {
        batch.Need(table, rows);
      });
    };
    for (Minibatch& batch : shard->Minibatches(prepare)) {
      if (const Fill* fill = std::any_cast<Fill>(&batch.user_data())) {
        FillRows(batch, fill->first);
      } else {
        meter->Count(One(batch, *std::any_cast<uint64_t>(&batch.user_data()), *meter));
      }
    }
  }

 private:
  struct Fill {
    uint64_t first;  // key
  };

  template <typename Visit>
  void ForEachTable(uint64_t call, const Visit& visit) {
    for (uint64_t table = 0; table < tables_.size(); ++table) {
      const std::span<const uint64_t> rows = calls_.Rows(call, table);
      if (!rows.empty()) visit(tables_[table], rows);
    }
  }

  void FillRows(Minibatch& batch, uint64_t first) {
    std::vector<std::vector<uint64_t>> rows(tables_.size());
    for (uint64_t key = first; key < std::min(first + kFillKeys, rows_); ++key) {
      rows[key % tables_.size()].push_back(key / tables_.size());
    }
    for (size_t table = 0; table < tables_.size(); ++table) {
      if (!rows[table].empty()) {
        batch.Push(tables_[table], rows[table], GradientsOf(rows[table].size()));
      }
    }
  }

  std::span<const float> GradientsOf(size_t rows) const {
    return std::span(gradients_).first(rows * tables_.front().width());
  }

  Step One(Minibatch& batch, uint64_t call, const Meter& meter) {
    const TimePoint began = meter.Now();
    Step step;
    ++pulled_;
    // All are asked for before the first one is waited for.
    if (ahead_ == Ahead::kNothing && tables_.size() > 1) {
      ForEachTable(call, [&](const Table& table, std::span<const uint64_t> keys) {
        batch.Need(table, keys);
      });
    }
    ForEachTable(call, [&](const Table& table, std::span<const uint64_t> keys) {
      const Rows rows = batch.Pull(table, keys);
      // A row that was never pushed has the value 0: then nothing was looked up.
      if (pulled_ > kPullsBeforeFilled && (rows[0][0] == 0 || rows[keys.size() - 1][0] == 0)) {
        Die("a row is not in the table");
      }
      step.rows += keys.size();
      step.bytes += rows.values().size_bytes();
    });
    step.waited = meter.Now() - began;
    step.records = 1;
    if (push_ == Push::kGradients) {
      ForEachTable(call, [&](const Table& table, std::span<const uint64_t> keys) {
        batch.Push(table, keys, GradientsOf(keys.size()));
      });
    }
    return step;
  }

  const uint64_t rows_;  // of all tables
  std::vector<Table> tables_;
  const TableCalls calls_;
  const Ahead ahead_;
  const Push push_;
  const std::vector<float> gradients_;
  uint64_t filled_ = 0;  // rows whose first push has been handed out
  uint64_t next_call_ = 0;
  uint64_t pulled_ = 0;  // calls
};

/// Steps that pull and push whole tensors; their latency is that of the step.
class DenseSteps {
 public:
  DenseSteps(Session* session, uint64_t elements, uint64_t tensors) {
    for (uint64_t number = 0; number < tensors; ++number) {
      const uint64_t its = elements * (number + 1) / tensors - elements * number / tensors;
      tensors_.push_back(session->DenseTable({.name = "tensor-" + std::to_string(number),
                                              .shape = {its},
                                              .optimizer = Adagrad{.learning_rate = 0.05f}}));
      sizes_.push_back(its);
      gradient_.resize(std::max<size_t>(gradient_.size(), its), kGradient);
    }
  }

  void Run(Shard* shard, Meter* meter) {
    TimePoint began = meter->Now();
    const auto prepare = [this](Minibatch& next) {
      for (const DenseTensor& tensor : tensors_) next.Need(tensor);
    };
    for (Minibatch& batch : shard->Minibatches(prepare)) {
      Step step{.rows = tensors_.size(), .records = 1};
      for (const DenseTensor& tensor : tensors_) {
        step.bytes += batch.Pull(tensor).values().size_bytes();
      }
      for (size_t number = 0; number < tensors_.size(); ++number) {
        batch.Push(tensors_[number], std::span(gradient_).first(sizes_[number]));
      }
      batch.Commit();
      const TimePoint now = meter->Now();
      step.waited = now - began;
      meter->Count(step);
      began = now;
    }
  }

 private:
  std::vector<DenseTensor> tensors_;
  std::vector<uint64_t> sizes_;
  std::vector<float> gradient_;  // as long as the largest
};

void ReadRecords(Shard* shard, Meter* meter) {
  TimePoint began = meter->Now();
  for (const Minibatch& batch : shard->Minibatches()) {
    uint64_t bytes = 0;
    for (const std::string_view record : batch.records()) bytes += record.size() + 1;
    const TimePoint now = meter->Now();
    meter->Count({.records = batch.records().size(), .bytes = bytes, .waited = now - began});
    began = now;
  }
}

/// Runs `one(shard, meter)` for every shard; the exit code.
template <typename One>
int Train(Session* session, Meter* meter, One&& one) {
  while (auto shard = session->NextShard()) one(&*shard, meter);
  return session->Finish();
}

/// As Train, for shards with nothing to do; the latency is that of NextShard.
int TrainEmpty(Session* session, Meter* meter) {
  TimePoint asked = meter->Now();
  while (auto shard = session->NextShard()) {
    const auto waited = meter->Now() - asked;
    uint64_t records = 0;
    for (const Minibatch& batch : shard->Minibatches()) records += batch.records().size();
    shard.reset();
    meter->Count({.records = records, .waited = waited});
    asked = meter->Now();
  }
  return session->Finish();
}

int WrongUsage() {
  std::fputs(kHelp, stderr);
  return 2;
}

int RunSparse(std::string_view mode, const std::string& folder, const std::string& path,
              std::optional<uint64_t> dim, std::optional<uint64_t> tables) {
  if (!dim || !tables) return WrongUsage();
  auto keys = ReadKeyFile(path);
  if (!keys.ok()) Die(keys.status().ToString());
  Session session = Session::Connect(SessionOptions::FromEnvironment()).value();
  Meter meter(folder);
  SparseSteps steps(
      &session, *keys, static_cast<uint32_t>(*dim), *tables,
      mode.starts_with("small") ? SparseSteps::Ahead::kNothing : SparseSteps::Ahead::kPrefetch,
      mode.ends_with("push") ? SparseSteps::Push::kGradients : SparseSteps::Push::kNothing);
  return Train(&session, &meter, [&](Shard* shard, Meter* to) { steps.Run(shard, to); });
}

int RunDense(const std::string& folder, std::optional<uint64_t> elements,
             std::optional<uint64_t> tensors) {
  if (!elements || !tensors || *tensors > *elements) return WrongUsage();
  Session session = Session::Connect(SessionOptions::FromEnvironment()).value();
  Meter meter(folder);
  DenseSteps steps(&session, *elements, *tensors);
  return Train(&session, &meter, [&](Shard* shard, Meter* to) { steps.Run(shard, to); });
}

int Main(std::span<char*> arguments) {
  const std::string_view mode = arguments.size() > 1 ? arguments[1] : "";
  if (mode == "--help") {
    std::fputs(kHelp, stdout);
    return 0;
  }
  constexpr std::array<std::string_view, 4> kSparse = {"pull", "pull-push", "small", "small-push"};
  const bool sparse = std::ranges::find(kSparse, mode) != kSparse.end();
  if (sparse && arguments.size() == 6) {
    return RunSparse(mode, arguments[2], arguments[3], WholeNumber(arguments[4], 65'536),
                     WholeNumber(arguments[5], kTablesMax));
  }
  if (mode == "dense" && arguments.size() == 5) {
    return RunDense(arguments[2], WholeNumber(arguments[3], std::numeric_limits<uint32_t>::max()),
                    WholeNumber(arguments[4], kTablesMax));
  }
  if ((mode != "read" && mode != "lease") || arguments.size() != 3) return WrongUsage();
  Session session = Session::Connect(SessionOptions::FromEnvironment()).value();
  Meter meter(arguments[2]);
  return mode == "lease" ? TrainEmpty(&session, &meter) : Train(&session, &meter, ReadRecords);
}

}  // namespace
}  // namespace muster

int main(int count, char** arguments) {
  return muster::Main({arguments, static_cast<size_t>(count)});
}
