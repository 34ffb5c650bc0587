// Sums of synchronous groups, over UNIX sockets: 2 and 4 processes add 64 B, 1 MiB and 64 MiB.
// Medians in milliseconds, as rank 0 sees them, in turns with memcpy and with one way over a UNIX
// socket of the same bytes. Run the release build on an idle machine:
//   build/release/benchmarks/collectives_bench [--smoke]
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <future>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "base/status.h"
#include "benchmarks/raw_sockets.h"
#include "collectives/reducer.h"

namespace muster::collectives {
namespace {

struct Case {
  size_t bytes = 0;
  int runs = 0;  // besides the warm-up
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

/// One process of the group.
class Member {
 public:
  Member(uint32_t rank, uint32_t members, const std::string& folder) {
    ReducerOptions options;
    options.attempt = AttemptNumber(1);
    options.rank = rank;
    for (uint32_t i = 0; i < members; ++i) {
      options.members.push_back({fmt::format("worker-{}", i), 1 + i, {"unix:" + Path(folder, i)}});
    }
    ListenerOptions listens;
    listens.job_id = "bench";
    listens.worker = options.members[rank].worker;
    listens.incarnation = options.members[rank].incarnation;
    listens.unix_path = Path(folder, rank);
    listens.host = "";
    listener_ = Listener::Start(std::move(listens)).value();
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

 private:
  static std::string Path(const std::string& folder, uint32_t rank) {
    return fmt::format("{}/m{}", folder, rank);
  }

  std::unique_ptr<Listener> listener_;
  std::unique_ptr<Reducer> reducer_;
  uint64_t step_ = 0;
};

/// What every rank but 0 does.
void Follow(uint32_t rank, uint32_t members, const std::string& folder,
            const std::vector<Case>& cases) {
  Member member(rank, members, folder);
  for (const Case& one : cases) {
    const std::vector<float> in(one.bytes / sizeof(float), 1);
    std::vector<float> out(in.size());
    for (int run = 0; run <= one.runs; ++run) member.Sum(in, &out);
  }
  std::vector<float> last(1, 1), sum(1);
  member.Sum(last, &sum);  // so nobody leaves before all are done
}

/// The other end of a one-way transfer: reads, and answers with a byte.
void Drain(int fd, const std::vector<Case>& cases) {
  for (const Case& one : cases) {
    std::vector<char> into(one.bytes);
    for (int run = 0; run <= one.runs; ++run) {
      ReadAll(fd, into.data(), into.size());
      WriteAll(fd, "", 1);
    }
  }
}

template <typename Work>
pid_t InChild(const Work& work) {
  const pid_t child = ::fork();
  MUSTER_CHECK(child >= 0);
  if (child == 0) {
    work();
    ::_exit(0);
  }
  return child;
}

void Measure(Member* member, uint32_t members, int way, const Case& one) {
  const std::vector<float> in(one.bytes / sizeof(float), 1);
  std::vector<float> out(in.size()), copy(in.size());
  std::vector<double> sums, copies, ways;
  for (int run = 0; run <= one.runs; ++run) {
    const double sum = Took([&] { member->Sum(in, &out); });
    MUSTER_CHECK(out.front() == static_cast<float>(members) && out.back() == out.front());
    const double copied = Took([&] { std::memcpy(copy.data(), in.data(), one.bytes); });
    MUSTER_CHECK(copy.back() == 1);
    char answer = 0;
    const double sent = Took([&] {
      WriteAll(way, in.data(), one.bytes);
      ReadAll(way, &answer, 1);
    });
    if (run == 0) continue;
    sums.push_back(sum), copies.push_back(copied), ways.push_back(sent);
  }
  fmt::print("{:9} {:10} {:10.3f} {:12.3f} {:14.3f} {:10.1f}\n", members, one.bytes, Median(sums),
             Median(copies), Median(ways), Median(sums) / Median(ways));
}

void Run(uint32_t members, const std::vector<Case>& cases) {
  std::string folder = (std::filesystem::temp_directory_path() / "muster-sum-XXXXXX").string();
  MUSTER_CHECK(::mkdtemp(folder.data()) != nullptr);
  std::array<int, 2> way;
  MUSTER_CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, way.data()) == 0);
  // Before this process has threads.
  std::vector<pid_t> children = {InChild([&] { Drain(way[1], cases); })};
  for (uint32_t rank = 1; rank < members; ++rank) {
    children.push_back(InChild([&] { Follow(rank, members, folder, cases); }));
  }
  {
    Member member(0, members, folder);
    for (const Case& one : cases) Measure(&member, members, way[0], one);
    std::vector<float> last(1, 1), sum(1);
    member.Sum(last, &sum);
    for (const pid_t child : children) {
      int status = 0;
      MUSTER_CHECK(::waitpid(child, &status, 0) == child && status == 0);
    }
  }
  for (const int fd : way) ::close(fd);
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
}

}  // namespace
}  // namespace muster::collectives

int main(int argc, char** argv) {
  using muster::collectives::Case;
  const bool smoke = argc == 2 && std::string_view(argv[1]) == "--smoke";
  if (argc > 1 && !smoke) {
    fmt::print(stderr, "usage: {} [--smoke]\n", argv[0]);
    return 2;
  }
  const std::vector<Case> cases =
      smoke ? std::vector<Case>{{64, 5}, {1u << 20, 2}}
            : std::vector<Case>{{64, 500}, {1u << 20, 50}, {64u << 20, 7}};
  fmt::print("processes      bytes     sum ms    memcpy ms  UNIX socket ms   sum / socket\n");
  std::fflush(stdout);  // before children inherit it
  for (const uint32_t members : {2u, 4u}) {
    muster::collectives::Run(members, cases);
    std::fflush(stdout);
  }
  return 0;
}
