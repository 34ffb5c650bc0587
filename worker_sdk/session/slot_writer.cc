#include "worker_sdk/session/slot_writer.h"
#include "base/failpoint.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace muster::sdk {

SlotWriter::SlotWriter(const std::string& path, uint64_t incarnation) {
  if (path.empty()) return;
  MUSTER_FAILPOINT("slot.before-open");
  int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  void* mapped = MAP_FAILED;
  // Allocates the blocks: on a full disk, a write into a hole of the mapped file would be a SIGBUS.
  if (fd >= 0) errno = ::posix_fallocate(fd, 0, sizeof(SlotFile));
  if (fd >= 0 && errno == 0) {
    mapped = ::mmap(nullptr, sizeof(SlotFile), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  }
  if (mapped == MAP_FAILED) {
    std::fprintf(stderr,
                 "muster: cannot map the slot file %s: %s; a crash of this trainer cannot be "
                 "charged to its shard\n",
                 path.c_str(), std::strerror(errno));
  } else {
    slot_ = static_cast<SlotFile*>(mapped);
    BeginSlot(slot_, incarnation);
  }
  if (fd >= 0) ::close(fd);
}

SlotWriter::~SlotWriter() {
  if (slot_ != nullptr) ::munmap(slot_, sizeof(SlotFile));
}

void SlotWriter::Enter(LeaseToken token) {
  if (slot_ != nullptr) EnterShard(slot_, token);
  MUSTER_FAILPOINT("slot.after-enter");
}

void SlotWriter::Minibatch(LeaseToken token) {
  if (slot_ != nullptr) StartMinibatch(slot_, token);
}

void SlotWriter::Leave(LeaseToken token) {
  if (slot_ != nullptr) LeaveShard(slot_, token);
  MUSTER_FAILPOINT("slot.after-leave");
}

void SlotWriter::End() {
  if (slot_ != nullptr) EndSlot(slot_);
}

}  // namespace muster::sdk
