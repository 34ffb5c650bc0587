#include "tests/sim/runner.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>

#include "base/check.h"
#include "base/random.h"

namespace muster::sim {
namespace {

constexpr size_t kKept = 8;

struct Note {
  uint64_t seed;
  char kind[32];
  char text[400];
};

/// The messages of a job to its parent, in shared memory.
struct Board {
  uint64_t next;  // the seed it works at
  bool over;
  uint64_t seeds, hash, deliveries, crashes, violations;
  int64_t simulated_ns;
  std::atomic<uint64_t> least{UINT64_MAX};  // of the first job: the least seed with a violation
  Note kept[kKept];
  Probes probes;
};

struct Unmap {
  void operator()(Board* board) const { ::munmap(board, sizeof(Board)); }
};
using BoardRef = std::unique_ptr<Board, Unmap>;

BoardRef NewBoard() {
  void* const memory =
      ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  MUSTER_CHECK(memory != MAP_FAILED);
  return BoardRef(new (memory) Board());
}

void Keep(Board* board, uint64_t seed, std::string_view kind, std::string_view text) {
  if (board->violations < kKept) {
    Note& note = board->kept[board->violations];
    note.seed = seed;
    std::snprintf(note.kind, sizeof(note.kind), "%.*s", static_cast<int>(kind.size()), kind.data());
    std::snprintf(note.text, sizeof(note.text), "%.*s", static_cast<int>(text.size()), text.data());
  }
  ++board->violations;
}

void Count(const RunResult& result, uint64_t seed, Board* board) {
  ++board->seeds;
  board->hash += HashWords(seed, result.hash);
  board->deliveries += result.deliveries;
  board->crashes += result.crashes;
  board->simulated_ns += result.simulated.count();
  for (size_t i = 0; i < kProbeCount; ++i) board->probes.counts[i] += result.probes.counts[i];
  if (!result.failure_kind.empty()) Keep(board, seed, result.failure_kind, result.failure);
}

/// Forks a process that calls `work` and ends.
template <typename Work>
pid_t Fork(Work work) {
  std::fflush(nullptr);
  const pid_t pid = ::fork();
  MUSTER_CHECK(pid >= 0);
  if (pid != 0) return pid;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  work();
  std::fflush(nullptr);
  ::_exit(0);
}

void Lower(std::atomic<uint64_t>* least, uint64_t seed) {
  uint64_t before = least->load();
  while (seed < before && !least->compare_exchange_weak(before, seed)) {
  }
}

void Set(const Plant& plant) {
  planted_bug = plant.bug;
  weakening = plant.weakening;
}

pid_t StartJob(const SweepOptions& options, std::atomic<uint64_t>* least, Board* board) {
  return Fork([&options, least, board] {
    Set(options.plant);
    const uint64_t end = options.first + options.seeds;
    for (; board->next < end; board->next += options.jobs) {
      // No job runs beyond the smallest failing seed, and no job stops before it. So the result is
      // the same for every number of jobs.
      if (options.stop_at_first && board->next > least->load()) break;
      ::alarm(static_cast<unsigned>(kSeedMax.count()));
      Count(options.simulate({.seed = board->next}), board->next, board);
      if (board->violations > 0) Lower(least, board->kept[0].seed);
    }
    ::alarm(0);
    board->over = true;
  });
}

/// A process that has ended in the middle of a seed: by a check of the code under test, or by its
/// alarm clock.
Violation Ended(uint64_t seed, int status) {
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) {
    return {seed, "hang", "the seed has not ended in its time"};
  }
  return {seed, "abort", fmt::format("the process ended with status {}", status)};
}

void AddBoard(const Board& board, Summary* summary) {
  summary->seeds += board.seeds;
  summary->hash += board.hash;
  summary->simulated_s += static_cast<double>(board.simulated_ns) * 1e-9;
  summary->deliveries += board.deliveries;
  summary->crashes += board.crashes;
  summary->violation_count += board.violations;
  for (uint64_t i = 0; i < std::min<uint64_t>(board.violations, kKept); ++i) {
    summary->violations.push_back({board.kept[i].seed, board.kept[i].kind, board.kept[i].text});
  }
  for (size_t i = 0; i < kProbeCount; ++i) summary->probes.counts[i] += board.probes.counts[i];
}

}  // namespace

Summary Sweep(const SweepOptions& options) {
  std::vector<BoardRef> boards;
  std::vector<pid_t> pids;
  for (uint32_t job = 0; job < options.jobs; ++job) {
    boards.push_back(NewBoard());
    boards.back()->next = options.first + job;
    pids.push_back(StartJob(options, &boards.front()->least, boards.back().get()));
  }
  for (size_t running = pids.size(); running > 0;) {
    int status = 0;
    const pid_t pid = ::wait(&status);
    const auto found = std::ranges::find(pids, pid);
    if (found == pids.end()) continue;
    Board* const board = boards[static_cast<size_t>(found - pids.begin())].get();
    if (!board->over) {
      ++board->seeds;
      const Violation ended = Ended(board->next, status);
      Keep(board, ended.seed, ended.kind, ended.text);
      Lower(&boards.front()->least, board->next);
      board->next += options.jobs;
      *found = StartJob(options, &boards.front()->least, board);
      continue;
    }
    *found = 0;
    --running;
  }
  Summary summary;
  for (const BoardRef& board : boards) AddBoard(*board, &summary);
  std::ranges::sort(summary.violations, {}, &Violation::seed);
  return summary;
}

std::optional<Violation> RunAlone(const RunOptions& options, const Plant& plant) {
  const BoardRef board = NewBoard();
  const pid_t pid = Fork([&] {
    Set(plant);
    if (std::freopen("/dev/null", "w", stderr) == nullptr) ::_exit(1);
    ::alarm(static_cast<unsigned>(kSeedMax.count()));
    Count(Simulate(options), options.seed, board.get());
    board->over = true;
  });
  int status = 0;
  ::waitpid(pid, &status, 0);
  if (!board->over) return Ended(options.seed, status);
  if (board->violations == 0) return std::nullopt;
  return Violation{options.seed, board->kept[0].kind, board->kept[0].text};
}

Minimised Minimise(const Violation& violation, const Plant& plant, uint64_t runs_max,
                   const RunOptions& from) {
  Minimised result;
  result.options = from;
  result.options.seed = violation.seed;
  result.options.print = false;
  if (violation.kind == "hang") runs_max = 0;
  const auto still_fails = [&](const RunOptions& options) {
    ++result.runs;
    const std::optional<Violation> found = RunAlone(options, plant);
    return found.has_value() && found->kind == violation.kind;
  };
  for (const std::string_view part : kPlanParts) {
    RunOptions less = result.options;
    less.without_parts.insert(std::string(part));
    if (result.runs < runs_max && still_fails(less)) result.options = less;
  }
  const FaultPlan plan = DrawFaults(violation.seed, DrawKnobs(violation.seed, plant.weakening));
  // Halves first, then ever smaller pieces, as delta debugging does (Zeller, Hildebrandt 2002).
  for (size_t size = (plan.faults.size() + 1) / 2; size > 0; size /= 2) {
    for (size_t begin = 0; begin < plan.faults.size(); begin += size) {
      RunOptions less = result.options;
      for (size_t i = begin; i < std::min(begin + size, plan.faults.size()); ++i) {
        less.without.insert(i);
      }
      if (less.without.size() == result.options.without.size()) continue;
      if (result.runs >= runs_max) break;
      if (still_fails(less)) result.options = less;
    }
  }
  for (size_t i = 0; i < plan.faults.size(); ++i) {
    if (!result.options.without.contains(i)) result.faults.push_back(ToString(plan.faults[i]));
  }
  return result;
}

std::vector<Violation> OneOfEachKind(const std::vector<Violation>& violations) {
  std::vector<Violation> result;
  for (const Violation& violation : violations) {
    const auto known = std::ranges::find(result, violation.kind, &Violation::kind);
    if (known == result.end()) result.push_back(violation);
  }
  return result;
}

const PlantedBugText& TextOf(PlantedBug bug) {
  const auto text = std::ranges::find(kPlantedBugs, bug, &PlantedBugText::bug);
  MUSTER_CHECK(text != std::end(kPlantedBugs));
  return *text;
}

const WeakeningText& TextOf(Weakening weakening) {
  const auto text = std::ranges::find(kWeakenings, weakening, &WeakeningText::weakening);
  MUSTER_CHECK(text != std::end(kWeakenings));
  return *text;
}

FoundBug Find(const Plant& plant, uint64_t seeds, uint32_t jobs) {
  const Summary summary =
      Sweep({.first = 1, .seeds = seeds, .jobs = jobs, .plant = plant, .stop_at_first = true});
  if (summary.violations.empty()) return {};
  return {summary.violations.front().seed, summary.violations.front().kind};
}

}  // namespace muster::sim
