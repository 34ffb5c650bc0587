#include <fmt/core.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

/// To be found in a stack.
__attribute__((noinline)) void NodeProgramDeepInside(int depth) {
  if (depth == 0) {
    fmt::print("deep\n");
    std::fflush(stdout);
    ::pause();
    return;
  }
  NodeProgramDeepInside(depth - 1);
  asm volatile("");  // no tail call
}

namespace {

/// For each number that comes, touches so many MiB more, and says so.
void Fill(std::istream& orders) {
  std::vector<std::unique_ptr<char[]>> held;
  size_t mebibytes = 0;
  while (orders >> mebibytes) {
    const size_t bytes = mebibytes << 20;
    held.push_back(std::make_unique<char[]>(bytes));
    std::memset(held.back().get(), 1, bytes);
    fmt::print("filled\n");
    std::fflush(stdout);
  }
}

}  // namespace

/// A node of the tests, until its orders end, which come through FIFO.
///
/// `node_program fill FIFO`: takes memory. `node_program deep FIFO`: the same, with a second thread
/// that waits deep in a stack. `node_program stuck FIFO`: waits in the kernel, where it cannot be
/// traced.
int main(int argc, char** argv) {
  if (argc != 3) return 2;
  std::thread deep;
  if (std::string(argv[1]) == "stuck" && ::vfork() == 0) {
    while (true) ::pause();
  }
  if (std::string(argv[1]) == "deep") {
    deep = std::thread([] {
      ::prctl(PR_SET_NAME, "deep-thread");
      NodeProgramDeepInside(5);
    });
  }
  std::ifstream orders(argv[2]);
  Fill(orders);
  std::_Exit(0);
}
