// What many members cost the master's owner thread: its real core, group commit and synced journal
// serve simulated workers and servers, with a clock by hand. master_members_bench --help
#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/file.h"
#include "benchmarks/members_job.h"
#include "benchmarks/whole_number.h"

namespace muster {
namespace {

constexpr uint64_t kMaxNumber = 1'000'000'000;

constexpr char kUsage[] =
    R"(Usage: master_members_bench [OPTION ...]

What workers and servers cost the thread of the master that owns core and journal: CPU time of that
thread, with the real core, group commit and synced journal. Members are simulated. There is no
network: every reply is turned into bytes, which the real master does beside this thread, and so it
is not in this thread's time; neither is handing the replies over. A manual clock advances by a
millisecond a turn, or by the time that the turn took the thread, if that is longer.

  a steady second   everybody's heartbeats with figures, and what snapshots cost; shards stand still
  one server        it dies; 200 ms later another process registers and takes its partitions over.
                    "away": workers ask every 20 ms for a newer map. "back": until every partition
                    is served and every worker has the map. What a steady time of the same length
                    costs is in both. The median of five servers
  all servers       the same, all at once; they register within a second
  the master        it dies; the next one opens the journal, and hears everybody once

  --workers N       default 1,000
  --servers N       default 256
  --partitions N    default 4,096
  --shards N        of the job, default 1,000,000
  --done N          shards that are DONE and not COMMITTED when servers die, default 10,000
  --output json     instead of text
  --smoke           few of all: shows in a second that it works, its figures mean nothing
)";

struct Settings {
  MembersSizes sizes;
  uint32_t rounds = 5;
  bool json = false;
};

struct Figures {
  MembersPhase steady;
  MembersJob::Restart one;
  MembersJob::Restart all;
  MembersJob::MasterRestart master;
};

double Milliseconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

std::chrono::nanoseconds Cpu(const MembersJob::Restart& restart) {
  return restart.away.costs.cpu() + restart.back.costs.cpu();
}

Figures Measure(const Settings& settings, const std::string& folder) {
  const MembersSizes& sizes = settings.sizes;
  MembersJob job(sizes, folder);
  Figures figures;
  job.Finish(sizes.done);  // otherwise, there would be nothing to snapshot
  figures.steady = job.Steady(sizes.steady);
  std::vector<MembersJob::Restart> rounds;
  for (uint32_t round = 0; round < settings.rounds; ++round) {
    job.Finish(sizes.done);
    rounds.push_back(job.RestartServers(round % sizes.servers, 1));
  }
  std::ranges::sort(rounds, {}, Cpu);
  figures.one = rounds[rounds.size() / 2];
  job.Finish(sizes.done);
  figures.all = job.RestartServers(0, sizes.servers);
  figures.master = job.RestartMaster();
  return figures;
}

std::string Text(std::string_view what, const MembersPhase& phase) {
  const OwnerCosts& costs = phase.costs;
  return fmt::format(
      "  {:7} {:9.1f} ms of CPU in {:.2f} s: core {:.1f}, journal {:.1f} ({:.1f} with the disk); "
      "beside it {:.1f} for the replies of {} calls, {:.1f} MB; largest step {:.2f} ms: {}\n",
      what, Milliseconds(costs.cpu()), Milliseconds(phase.lasted) / 1000, Milliseconds(costs.core),
      Milliseconds(costs.journal), Milliseconds(costs.journal_wall), Milliseconds(costs.answer),
      costs.calls, static_cast<double>(costs.reply_bytes) / 1e6, Milliseconds(costs.largest),
      costs.largest_what);
}

void PrintText(const MembersSizes& sizes, const Figures& figures) {
  const double seconds = Milliseconds(figures.steady.lasted) / 1000;
  fmt::print("{} workers, {} servers, {} partitions; CPU of the master's owner thread\n",
             sizes.workers, sizes.servers, sizes.partitions);
  fmt::print("a steady second: {:.1f} ms\n{}", Milliseconds(figures.steady.costs.cpu()) / seconds,
             Text("all", figures.steady));
  fmt::print("restart of one server: {:.1f} ms\n{}{}", Milliseconds(Cpu(figures.one)),
             Text("away", figures.one.away), Text("back", figures.one.back));
  fmt::print("restart of all servers: {:.1f} ms\n{}{}", Milliseconds(Cpu(figures.all)),
             Text("away", figures.all.away), Text("back", figures.all.back));
  fmt::print("restart of the master: {:.1f} ms until it serves, {:.1f} ms of CPU\n{}",
             Milliseconds(figures.master.open_wall), Milliseconds(figures.master.open_cpu),
             Text("heard", figures.master.heard));
}

std::string Json(const MembersPhase& phase) {
  const OwnerCosts& costs = phase.costs;
  return fmt::format(R"({{"cpu_ms": {}, "lasted_ms": {}, "core_ms": {}, )"
                     R"("journal_ms": {}, "journal_wall_ms": {}, "replies_ms": {}, "calls": {}, )"
                     R"("reply_bytes": {}, )"
                     R"("largest_ms": {}, "largest": "{}"}})",
                     Milliseconds(costs.cpu()), Milliseconds(phase.lasted),
                     Milliseconds(costs.core), Milliseconds(costs.journal),
                     Milliseconds(costs.journal_wall), Milliseconds(costs.answer), costs.calls,
                     costs.reply_bytes, Milliseconds(costs.largest), costs.largest_what);
}

std::string Json(const MembersJob::Restart& restart) {
  return fmt::format(R"({{"cpu_ms": {}, "away": {}, "back": {}}})", Milliseconds(Cpu(restart)),
                     Json(restart.away), Json(restart.back));
}

void PrintJson(const MembersSizes& sizes, const Figures& figures) {
  const MembersPhase& steady = figures.steady;
  const double seconds = Milliseconds(steady.lasted) / 1000;
  fmt::print(
      R"({{"workers": {}, "servers": {}, "partitions": {}, "steady": {{"cpu_ms_per_second": {}, )"
      R"("all": {}}}, "one_server": {}, "all_servers": {}, )"
      R"("master": {{"open_ms": {}, "open_cpu_ms": {}, "heard": {}}}}})"
      "\n",
      sizes.workers, sizes.servers, sizes.partitions, Milliseconds(steady.costs.cpu()) / seconds,
      Json(steady), Json(figures.one), Json(figures.all), Milliseconds(figures.master.open_wall),
      Milliseconds(figures.master.open_cpu), Json(figures.master.heard));
}

/// Nothing if an argument is not as kUsage has it.
std::optional<Settings> Parse(std::span<char*> arguments) {
  Settings settings;
  MembersSizes& sizes = settings.sizes;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view name = arguments[i];
    if (name == "--smoke") {
      sizes = {20, 4, 64, 10'000, 100, std::chrono::seconds(1)};
      settings.rounds = 1;
      continue;
    }
    if (++i == arguments.size()) return std::nullopt;
    if (name == "--output" && arguments[i] == std::string_view("json")) {
      settings.json = true;
      continue;
    }
    const std::optional<uint64_t> number = WholeNumber(arguments[i], kMaxNumber);
    if (!number) return std::nullopt;
    if (name == "--workers" && *number <= kWorkersMax) {
      sizes.workers = static_cast<uint32_t>(*number);
    } else if (name == "--servers" && *number <= kServerReplicasMax) {
      sizes.servers = static_cast<uint32_t>(*number);
    } else if (name == "--partitions" && *number <= most::kPartitions) {
      sizes.partitions = static_cast<uint32_t>(*number);
    } else if (name == "--shards") {
      sizes.shards = *number;
    } else if (name == "--done") {
      sizes.done = *number;
    } else {
      return std::nullopt;
    }
  }
  // Every restart leaves at most so many shards that are not TODO.
  const uint64_t least = (settings.rounds + 2) * sizes.done + 8 * uint64_t{sizes.workers};
  if (sizes.shards < least || sizes.servers > sizes.partitions) return std::nullopt;
  return settings;
}

int Main(std::span<char*> arguments) {
  if (!arguments.empty() && arguments[0] == std::string_view("--help")) {
    fmt::print("{}", kUsage);
    return 0;
  }
  const std::optional<Settings> settings = Parse(arguments);
  if (!settings) {
    fmt::print(stderr, "{}", kUsage);
    return 2;
  }
  const std::string folder = MakePrivateFolder(TemporaryFolder(), "muster-master-members").value();
  const Figures figures = Measure(*settings, folder);
  std::filesystem::remove_all(folder);
  (settings->json ? PrintJson : PrintText)(settings->sizes, figures);
  return 0;
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  return muster::Main(std::span(argv, static_cast<size_t>(argc)).subspan(1));
}
