// The simulation as a program: many seeds, or the story of one.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "tests/sim/runner.h"

namespace muster::sim {
namespace {

constexpr std::string_view kHelp =
    R"(Usage: sim [--seeds N] [--first S] [--jobs J] [--bug NAME] [--weaken NAME] [--probes]
       sim --seed S [--trace] [--bug NAME] [--weaken NAME] [--without LIST]
       sim --bugs [--bug NAME] [--seeds N] [--jobs J]

Runs the real master core, partitions and worker core as a whole job in one thread on virtual
time, with faults, and checks what must hold (tests/sim/README.md). One seed is one trace.

  --seeds N       how many seeds (1)
  --first S       the first of them (1)
  --jobs J        processes (all cores); the results do not depend on it
  --probes        how often the rare paths ran; of 10,000 seeds or more, each must have
  --seed S        one seed; if it fails, with as few faults as still fail alike
  --trace         prints its story: microseconds, who, what
  --without LIST  faults that do not happen: numbers and parts, as the minimiser prints them
  --bug NAME      takes one rule out, with the weakening that it is planted with
  --weaken NAME   a weakening alone
  --bugs          every weakening alone, which must do no harm, then takes every rule out in turn:
                  how many seeds until that is seen, and within how many it must be (or --seeds)

Of many seeds that fail, the first of every kind of failure is told with as few faults as still
fail alike. A seed that does not end in 300 s is a failure, too.

Exit code: 0 all held, 1 not, 2 wrong arguments.

Examples:
  sim --seeds 10000 --probes
  sim --seed 42 --trace | less
  sim --seeds 1000 --bug no-reverify
)";

struct Arguments {
  std::set<std::string_view> given;
  uint64_t seeds = 1, first = 1;
  uint32_t jobs = std::max(1u, std::thread::hardware_concurrency());
  std::optional<uint64_t> seed;
  bool trace = false, probes = false, bugs = false, help = false;
  Plant plant;
  RunOptions without;
};

bool TakeNumber(std::string_view text, uint64_t* number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && end == text.data() + text.size();
}

bool TakeWithout(std::string_view list, RunOptions* options) {
  while (!list.empty()) {
    const std::string_view item = list.substr(0, list.find(','));
    list.remove_prefix(std::min(list.size(), item.size() + 1));
    uint64_t number = 0;
    if (TakeNumber(item, &number)) {
      options->without.insert(number);
    } else {
      bool known = false;
      for (const std::string_view part : kPlanParts) known |= part == item;
      if (!known) return false;
      options->without_parts.insert(std::string(item));
    }
  }
  return true;
}

bool TakeBug(std::string_view name, Plant* plant) {
  for (const PlantedBugText& one : kPlantedBugs) {
    if (one.name == name) *plant = {one.bug, one.weakening};
  }
  return plant->bug != PlantedBug::kNone;
}

bool TakeWeakening(std::string_view name, Plant* plant) {
  for (const WeakeningText& one : kWeakenings) {
    if (one.name == name) plant->weakening = one.weakening;
  }
  return plant->weakening != Weakening::kNone;
}

/// The argument that is wrong, or empty.
std::string Take(std::vector<std::string_view> words, Arguments* arguments) {
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words[i];
    arguments->given.insert(word);
    if (word == "--trace" || word == "--probes" || word == "--bugs" || word == "--help") {
      arguments->trace |= word == "--trace";
      arguments->probes |= word == "--probes";
      arguments->bugs |= word == "--bugs";
      arguments->help |= word == "--help";
      continue;
    }
    const std::string_view value = i + 1 < words.size() ? words[++i] : std::string_view();
    uint64_t number = 0;
    const bool is_number = TakeNumber(value, &number);
    bool good = true;
    if (word == "--seeds" && is_number && number > 0) {
      arguments->seeds = number;
    } else if (word == "--first" && is_number) {
      arguments->first = number;
    } else if (word == "--jobs" && is_number && number > 0 && number <= 1024) {
      arguments->jobs = static_cast<uint32_t>(number);
    } else if (word == "--seed" && is_number) {
      arguments->seed = number;
    } else if (word == "--bug") {
      good = TakeBug(value, &arguments->plant);
    } else if (word == "--weaken") {
      good = TakeWeakening(value, &arguments->plant);
    } else if (word == "--without") {
      good = TakeWithout(value, &arguments->without);
    } else {
      good = false;
    }
    if (!good) return fmt::format("{} {}", word, value);
  }
  return "";
}

/// What is wrong with the arguments together: each belongs to one of the three uses. Empty:
/// nothing.
std::string WhatDoesNotFit(const Arguments& arguments) {
  struct Use {
    bool chosen;
    std::string_view name;
    std::set<std::string_view> takes;
  };
  const Use uses[] = {
      {arguments.bugs, "--bugs", {"--bugs", "--bug", "--seeds", "--jobs"}},
      {arguments.seed.has_value(),
       "--seed",
       {"--seed", "--trace", "--bug", "--weaken", "--without"}},
      {true, "many seeds", {"--seeds", "--first", "--jobs", "--bug", "--weaken", "--probes"}}};
  const Use& use = *std::ranges::find_if(uses, &Use::chosen);
  for (const std::string_view word : arguments.given) {
    if (!use.takes.contains(word)) return fmt::format("{} does not go with {}", word, use.name);
  }
  return "";
}

std::string WithoutText(const RunOptions& options) {
  std::string text;
  for (const size_t number : options.without) text += fmt::format(",{}", number);
  for (const std::string& part : options.without_parts) text += fmt::format(",{}", part);
  return text.empty() ? "" : fmt::format(" --without '{}'", text.substr(1));
}

std::string PlantText(const Plant& plant) {
  if (plant.bug != PlantedBug::kNone) return fmt::format(" --bug {}", TextOf(plant.bug).name);
  if (plant.weakening == Weakening::kNone) return "";
  return fmt::format(" --weaken {}", TextOf(plant.weakening).name);
}

void Explain(const Violation& violation, const Plant& plant, const RunOptions& from = {}) {
  const Minimised least = Minimise(violation, plant, 300, from);
  fmt::print("\nseed {}: {}: {}\n  with {} faults left after {} runs:\n", violation.seed,
             violation.kind, violation.text, least.faults.size(), least.runs);
  for (const std::string& fault : least.faults) fmt::print("    {}\n", fault);
  fmt::print("  sim --seed {} --trace{}{}\n", violation.seed, WithoutText(least.options),
             PlantText(plant));
}

int RunSeeds(const Arguments& arguments) {
  const SystemClock clock;
  const TimePoint begin = clock.Now();
  const Summary summary = Sweep({.first = arguments.first,
                                 .seeds = arguments.seeds,
                                 .jobs = arguments.jobs,
                                 .plant = arguments.plant});
  const double seconds = std::chrono::duration<double>(clock.Now() - begin).count();
  const auto mean = [&](uint64_t total) {
    return static_cast<double>(total) / static_cast<double>(summary.seeds);
  };
  fmt::print(
      "{} seeds, {} violations; {:.1f} s, {:.1f} simulated hours; a seed has {:.0f} deliveries and "
      "{:.1f} crashes\n",
      summary.seeds, summary.violation_count, seconds, summary.simulated_s / 3600,
      mean(summary.deliveries), mean(summary.crashes));
  fmt::print("hash over all traces {:016x}\n", summary.hash);
  bool missed = false;
  for (size_t i = 0; arguments.probes && i < kProbeCount; ++i) {
    const uint64_t count = summary.probes.counts[i];
    missed |= count == 0;
    fmt::print("  {:>10}  {:<22} {}\n", count, kProbeTexts[i].name, kProbeTexts[i].what);
  }
  if (missed) fmt::print("a rare path never ran\n");
  for (const Violation& violation : OneOfEachKind(summary.violations)) {
    Explain(violation, arguments.plant);
  }
  for (const Violation& violation : summary.violations) {
    fmt::print("seed {}: {}: {}\n", violation.seed, violation.kind, violation.text);
  }
  const bool must_hit = arguments.probes && arguments.seeds >= 10'000;
  return summary.violation_count > 0 || (missed && must_hit) ? 1 : 0;
}

int RunOne(const Arguments& arguments) {
  planted_bug = arguments.plant.bug;
  weakening = arguments.plant.weakening;
  RunOptions options = arguments.without;
  options.seed = *arguments.seed;
  options.print = arguments.trace;
  if (!arguments.trace) {
    if (const auto violation = RunAlone(options, arguments.plant); violation.has_value()) {
      Explain(*violation, arguments.plant, options);
      return 1;
    }
  }
  const RunResult result = Simulate(options);
  fmt::print("seed {}: {} in {:.1f} simulated seconds, {} deliveries, {} crashes, hash {:016x}\n",
             options.seed,
             result.failure_kind.empty() ? "all held" : result.failure_kind + ": " + result.failure,
             static_cast<double>(result.simulated.count()) * 1e-9, result.deliveries,
             result.crashes, result.hash);
  return result.failure_kind.empty() ? 0 : 1;
}

int RunBugs(const Arguments& arguments) {
  bool all = true;
  for (const WeakeningText& text : kWeakenings) {
    if (text.weakening == Weakening::kNone || arguments.plant.bug != PlantedBug::kNone) continue;
    const FoundBug found = Find({.weakening = text.weakening}, kWeakenedSeeds, arguments.jobs);
    all &= found.seed == 0;
    fmt::print("weakening {:<14} {}: {}\n", text.name, text.what,
               found.seed == 0 ? fmt::format("no violation in {} seeds", kWeakenedSeeds)
                               : fmt::format("seed {}: {}", found.seed, found.kind));
    std::fflush(stdout);
  }
  fmt::print("\n{:<28} {:<10} {:<14} {:>5} {:>7}  {:<16} {}\n", "planted bug", "rule", "with",
             "found", "within", "seen as", "what is wrong");
  for (const PlantedBugText& text : kPlantedBugs) {
    if (arguments.plant.bug != PlantedBug::kNone && arguments.plant.bug != text.bug) continue;
    const uint64_t within = arguments.seeds > 1 ? arguments.seeds : text.within;
    const FoundBug found = Find({text.bug, text.weakening}, within, arguments.jobs);
    all &= found.seed != 0;
    fmt::print("{:<28} {:<10} {:<14} {:>5} {:>7}  {:<16} {}\n", text.name, text.rule,
               TextOf(text.weakening).name, found.seed == 0 ? "-" : std::to_string(found.seed),
               within, found.kind, text.what);
    std::fflush(stdout);
  }
  return all ? 0 : 1;
}

}  // namespace
}  // namespace muster::sim

int main(int argc, char** argv) {
  using namespace muster::sim;
  muster::InitLogging("sim", muster::LogLevel::kOff);
  Arguments arguments;
  const std::string wrong = Take({argv + 1, argv + argc}, &arguments);
  if (!wrong.empty()) {
    fmt::print(stderr, "sim: do not know '{}'; --help says what there is\n", wrong);
    return 2;
  }
  if (arguments.help) {
    fmt::print("{}", kHelp);
    return 0;
  }
  if (const std::string wrong_together = WhatDoesNotFit(arguments); !wrong_together.empty()) {
    fmt::print(stderr, "sim: {}; --help says what does\n", wrong_together);
    return 2;
  }
  if (arguments.bugs) return RunBugs(arguments);
  return arguments.seed.has_value() ? RunOne(arguments) : RunSeeds(arguments);
}
