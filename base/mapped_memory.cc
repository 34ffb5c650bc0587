#include "base/mapped_memory.h"

#include <sys/mman.h>

#include <cstdint>
#include <new>

#include "base/check.h"

namespace muster {

std::byte* MapMemory(size_t bytes) {
  // The system chooses where the mapping begins. So this maps more than it needs, and unmaps the
  // rest.
  const size_t more = bytes >= kHugePageBytes ? kHugePageBytes : 0;
  void* const mapped = ::mmap(nullptr, bytes + more, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  auto* const from = static_cast<std::byte*>(mapped);
  if (more == 0) return from;
  const size_t before = -reinterpret_cast<uintptr_t>(from) % kHugePageBytes;
  std::byte* const begin = from + before;
  // If the process has very many mappings, unmapping can fail. The memory then stays, unused.
  if (before > 0) ::munmap(from, before);
  if (more > before) ::munmap(begin + bytes, more - before);
  // A system without huge pages refuses this; the pages then stay small.
  static_cast<void>(::madvise(begin, bytes, MADV_HUGEPAGE));
  return begin;
}

void UnmapMemory(void* begin, size_t bytes) {
  MUSTER_CHECK(::munmap(begin, bytes) == 0);
}

}  // namespace muster
