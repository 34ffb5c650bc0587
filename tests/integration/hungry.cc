// Preloaded into nodes by out_of_memory_test.py: once the file $HUNGRY_FLAG exists, each takes
// $HUNGRY_MIB of memory, and in every later life again, like a table that has grown.

#include <sys/inotify.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <string>
#include <thread>

namespace {

void WaitFor(const std::string& flag) {
  const int fd = ::inotify_init1(IN_CLOEXEC);
  const std::string folder = flag.substr(0, flag.rfind('/'));
  ::inotify_add_watch(fd, folder.c_str(), IN_CREATE);
  char events[4096];
  while (::access(flag.c_str(), F_OK) != 0 && ::read(fd, events, sizeof(events)) > 0) {
  }
  ::close(fd);
}

void Eat(const std::string& flag, size_t bytes) {
  WaitFor(flag);
  auto* memory = static_cast<volatile char*>(std::malloc(bytes));
  for (size_t i = 0; memory != nullptr && i < bytes; i += 4096) memory[i] = 1;
}

__attribute__((constructor)) void Begin() {
  const char* flag = std::getenv("HUNGRY_FLAG");
  const char* mib = std::getenv("HUNGRY_MIB");
  if (flag == nullptr || mib == nullptr) return;
  std::thread(Eat, std::string(flag), std::strtoull(mib, nullptr, 10) << 20).detach();
}

}  // namespace
