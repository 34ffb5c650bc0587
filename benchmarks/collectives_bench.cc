// Sums of synchronous groups: processes of this machine add float32 numbers, over UNIX sockets,
// over TCP, or through shared memory. Rank 0 takes the times, in turns with memcpy and with one way
// over a UNIX socket of the same bytes. `--help` has the options; run the release build on an idle
// machine. benchmarks/groups.py runs it beside a peer.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <future>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/status.h"
#include "benchmarks/lane/raw_sockets.h"
#include "benchmarks/whole_number.h"
#include "collectives/reducer.h"

namespace muster::collectives {
namespace {

constexpr std::array<std::string_view, 3> kWays = {"unix", "tcp", "shared"};

/// One line of the output.
struct Case {
  std::string way = "shared";
  uint32_t members = 2;
  size_t bytes = 64;
  uint64_t runs = 0;  // besides the warm-up
};

using Milliseconds = std::chrono::duration<double, std::milli>;

double Median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

template <typename Work>
double Took(const Work& work) {
  const SystemClock clock;
  const TimePoint began = clock.Now();
  work();
  return Milliseconds(clock.Now() - began).count();
}

/// An address, as it goes from one process to another.
using AddressRecord = std::array<char, 200>;

/// One process of the group.
class Member {
 public:
  /// `exchange`, of the own address: those of all members.
  template <typename Exchange>
  Member(uint32_t rank, const Case& one, const std::string& folder, const Exchange& exchange) {
    ListenerOptions listens;
    listens.job_id = "bench";
    listens.worker = Name(rank);
    listens.incarnation = 1 + rank;
    if (one.way != "tcp") {
      listens.unix_path = fmt::format("{}/m{}", folder, rank);
      listens.host = "";
    }
    if (one.way != "shared") listens.ring_bytes_max = 0;
    listener_ = Listener::Start(std::move(listens)).value();
    ReducerOptions options;
    options.attempt = AttemptNumber(1);
    options.rank = rank;
    for (const std::string& address : exchange(listener_->addresses()[0])) {
      const auto i = static_cast<uint32_t>(options.members.size());
      options.members.push_back({Name(i), 1 + i, {address}});
    }
    options.listener = listener_.get();
    reducer_ = Reducer::Start(
        std::move(options), [](const SuspectedMember& who) { MUSTER_CHECK_MSG(false, who.text); });
  }

  void Sum(const std::vector<float>& in, std::vector<float>* out) {
    const auto done = std::make_shared<std::promise<absl::Status>>();
    std::future<absl::Status> status = done->get_future();
    reducer_->Sum(StepNumber(++step_), 0, GroupDtype::kFloat32, std::as_bytes(std::span(in)),
                  std::as_writable_bytes(std::span(*out)),
                  [done](absl::Status answer, uint32_t /*crc*/) { done->set_value(answer); });
    const absl::Status answer = status.get();
    MUSTER_CHECK_MSG(answer.ok(), Message(answer));
  }
  /// So nobody leaves before all are done.
  void Leave() {
    const std::vector<float> last(1, 1);
    std::vector<float> sum(1);
    Sum(last, &sum);
  }

 private:
  static std::string Name(uint32_t rank) { return fmt::format("worker-{}", rank); }

  std::unique_ptr<Listener> listener_;
  std::unique_ptr<Reducer> reducer_;
  uint64_t step_ = 0;
};

AddressRecord RecordOf(const std::string& address) {
  AddressRecord record{};
  MUSTER_CHECK(address.size() < record.size());
  address.copy(record.data(), address.size());
  return record;
}

/// What every rank but 0 does; `parent` is a socket to rank 0.
void Follow(uint32_t rank, const Case& one, const std::string& folder, int parent) {
  Member member(rank, one, folder, [&](const std::string& own) {
    const AddressRecord mine = RecordOf(own);
    WriteAll(parent, mine.data(), mine.size());
    std::vector<std::string> all;
    for (uint32_t i = 0; i < one.members; ++i) {
      AddressRecord record;
      ReadAll(parent, record.data(), record.size());
      all.emplace_back(record.data());
    }
    return all;
  });
  const std::vector<float> in(one.bytes / sizeof(float), 1);
  std::vector<float> out(in.size());
  for (uint64_t run = 0; run <= one.runs; ++run) member.Sum(in, &out);
  member.Leave();
}

/// The other end of a one-way transfer: reads, and answers with a byte.
void Drain(int fd, const Case& one) {
  std::vector<char> into(one.bytes);
  for (uint64_t run = 0; run <= one.runs; ++run) {
    ReadAll(fd, into.data(), into.size());
    WriteAll(fd, "", 1);
  }
}

/// A process that has one end of a pair of sockets; this one has the other.
struct Child {
  pid_t process = -1;
  int socket = -1;
};
template <typename Work>
Child InChild(const Work& work) {
  std::array<int, 2> pair;
  MUSTER_CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()) == 0);
  const pid_t process = ::fork();
  MUSTER_CHECK(process >= 0);
  if (process == 0) {
    ::close(pair[0]);
    work(pair[1]);
    ::_exit(0);
  }
  ::close(pair[1]);
  return {process, pair[0]};
}

/// In milliseconds, a number for each run.
struct Times {
  std::vector<double> sums, copies, ways;
};

Times Measure(Member* member, const Case& one, int way) {
  const std::vector<float> in(one.bytes / sizeof(float), 1);
  std::vector<float> out(in.size()), copy(in.size());
  Times times;
  for (uint64_t run = 0; run <= one.runs; ++run) {
    const double sum = Took([&] { member->Sum(in, &out); });
    MUSTER_CHECK(out.front() == static_cast<float>(one.members) && out.back() == out.front());
    const double copied = Took([&] { std::memcpy(copy.data(), in.data(), one.bytes); });
    MUSTER_CHECK(copy.back() == 1);
    char answer = 0;
    const double sent = Took([&] {
      WriteAll(way, in.data(), one.bytes);
      ReadAll(way, &answer, 1);
    });
    if (run == 0) continue;
    times.sums.push_back(sum), times.copies.push_back(copied), times.ways.push_back(sent);
  }
  return times;
}

Times Run(const Case& one) {
  const std::string folder = MakePrivateFolder(TemporaryFolder(), "muster-sum").value();
  // Before this process has threads.
  std::vector<Child> children = {InChild([&](int socket) { Drain(socket, one); })};
  for (uint32_t rank = 1; rank < one.members; ++rank) {
    children.push_back(InChild([&, rank](int socket) { Follow(rank, one, folder, socket); }));
  }
  Times times;
  {
    Member member(0, one, folder, [&](const std::string& own) {
      std::vector<AddressRecord> all = {RecordOf(own)};
      for (uint32_t rank = 1; rank < one.members; ++rank) {
        ReadAll(children[rank].socket, all.emplace_back().data(), sizeof(AddressRecord));
      }
      std::vector<std::string> texts;
      for (const AddressRecord& record : all) texts.emplace_back(record.data());
      for (uint32_t rank = 1; rank < one.members; ++rank) {
        WriteAll(children[rank].socket, all.data(), all.size() * sizeof(AddressRecord));
      }
      return texts;
    });
    times = Measure(&member, one, children[0].socket);
    member.Leave();
    for (const Child& child : children) {
      int status = 0;
      MUSTER_CHECK(::waitpid(child.process, &status, 0) == child.process && status == 0);
      ::close(child.socket);
    }
  }
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  return times;
}

void PrintJson(const Case& one, const Times& times) {
  fmt::print(R"({{"way": "{}", "members": {}, "bytes": {}, )", one.way, one.members, one.bytes);
  fmt::print(R"("sum_ms": {}, "memcpy_ms": {}, "socket_ms": {}}})"
             "\n",
             times.sums, times.copies, times.ways);
}

void PrintLine(const Case& one, const Times& times) {
  const double sum = Median(times.sums);
  fmt::print("{:9} {:9} {:10} {:10.3f} {:11.3f} {:15.3f} {:13.1f} {:13.1f}\n", one.members, one.way,
             one.bytes, sum, Median(times.copies), Median(times.ways), sum / Median(times.copies),
             sum / Median(times.ways));
}

void PrintHelp(const char* program) {
  fmt::print(R"(usage: {} [--smoke] [--way WAY] [--members N] [--bytes N] [--runs N] [--output json]

Processes of this machine add float32 numbers. Rank 0 takes the times, in turns with memcpy and
with one way over a UNIX socket of the same bytes.

  --way WAY      unix: UNIX sockets; tcp: loopback, with checksums; shared: shared memory (all)
  --members N    processes, from 2 to 64 (2, then 4)
  --bytes N      of the bucket, a multiple of 4 up to 1 GiB (64 B, 1 MiB, 64 MiB)
  --runs N       besides the warm-up, up to 100000 (as many as fit into seconds)
  --output json  a line for each case with the milliseconds of each run, instead of medians
  --smoke        few runs and small buckets: shows that it works, its figures mean nothing

example: {} --way shared --members 4 --bytes 67108864 --runs 7
)",
             program, program);
}

struct Options {
  std::vector<std::string> ways{kWays.begin(), kWays.end()};
  std::vector<uint32_t> members = {2, 4};
  std::vector<size_t> bytes = {64, 1u << 20, 64u << 20};
  std::optional<uint64_t> runs;
  bool smoke = false, json = false;
};

/// Nothing if the arguments are wrong.
std::optional<Options> Parse(const std::vector<std::string_view>& arguments) {
  Options options;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view name = arguments[i];
    if (name == "--smoke") {
      options.smoke = true;
      options.bytes = {64, 1u << 20};
      continue;
    }
    if (++i == arguments.size()) return std::nullopt;
    const std::string_view value = arguments[i];
    const std::optional<uint64_t> number = WholeNumber(value, 1u << 30);
    if (name == "--way" && std::ranges::find(kWays, value) != kWays.end()) {
      options.ways = {std::string(value)};
    } else if (name == "--output" && value == "json") {
      options.json = true;
    } else if (name == "--members" && number.has_value() && *number >= 2 && *number <= 64) {
      options.members = {static_cast<uint32_t>(*number)};
    } else if (name == "--bytes" && number.has_value() && *number % sizeof(float) == 0) {
      options.bytes = {*number};
    } else if (name == "--runs" && number.has_value() && *number <= 100'000) {
      options.runs = *number;
    } else {
      return std::nullopt;
    }
  }
  return options;
}

/// As many as fit into seconds.
uint64_t RunsOf(const Options& options, size_t bytes) {
  if (options.runs.has_value()) return *options.runs;
  if (options.smoke) return 3;
  return bytes <= 4096 ? 500 : bytes <= (4u << 20) ? 50 : 7;
}

void RunAll(const Options& options) {
  if (!options.json) {
    fmt::print(
        "processes way            bytes     sum ms   memcpy ms  UNIX socket ms  sum / memcpy  sum "
        "/ "
        "socket\n");
  }
  for (const uint32_t members : options.members) {
    for (const std::string& way : options.ways) {
      for (const size_t bytes : options.bytes) {
        std::fflush(stdout);  // before children inherit it
        const Case one{way, members, bytes, RunsOf(options, bytes)};
        (options.json ? PrintJson : PrintLine)(one, Run(one));
      }
    }
  }
}

}  // namespace
}  // namespace muster::collectives

int main(int argc, char** argv) {
  using namespace muster::collectives;
  const std::vector<std::string_view> arguments(argv + 1, argv + argc);
  if (arguments == std::vector<std::string_view>{"--help"}) {
    PrintHelp(argv[0]);
    return 0;
  }
  const auto options = Parse(arguments);
  if (!options.has_value()) {
    fmt::print(stderr, "{}: these arguments are wrong; --help says which there are\n", argv[0]);
    return 2;
  }
  RunAll(*options);
  return 0;
}
