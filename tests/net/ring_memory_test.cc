#include "net/ring_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <utility>

#include "tests/support/status_matchers.h"

namespace muster::net {
namespace {

using ::testing::HasSubstr;
using testing::StatusIs;

constexpr size_t kRingSize = RingMemory::kRingBytesMin;

/// Both ends of a connected UNIX socket.
std::pair<OwnedFd, OwnedFd> FdPair() {
  std::array<int, 2> fds;
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds.data()), 0);
  return {OwnedFd(fds[0]), OwnedFd(fds[1])};
}

OwnedFd Copy(const RingMemory& memory) {
  return OwnedFd(::fcntl(memory.descriptor(), F_DUPFD_CLOEXEC, 0));
}

/// Shared memory as a peer might make it.
OwnedFd File(size_t bytes, int seals) {
  OwnedFd file(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(::ftruncate(file.get(), static_cast<off_t>(bytes)), 0);
  EXPECT_EQ(::fcntl(file.get(), F_ADD_SEALS, seals), 0);
  return file;
}

TEST(RingMemoryTest, MakerAndOpenerSeeTheSameRings) {
  MUSTER_ASSERT_OK_AND_ASSIGN(const RingMemory made, RingMemory::Make(kRingSize));
  MUSTER_ASSERT_OK_AND_ASSIGN(const RingMemory opened, RingMemory::Open(Copy(made), kRingSize));
  made.makers().data[kRingSize - 1] = std::byte{1};
  made.makers().data[kRingSize] = std::byte{2};  // the beginning, once more
  EXPECT_EQ(opened.makers().data[2 * kRingSize - 1], std::byte{1});
  EXPECT_EQ(opened.makers().data[0], std::byte{2});
  EXPECT_EQ(opened.openers().data[0], std::byte{0});
  made.openers().control->read = 7;
  EXPECT_EQ(opened.openers().control->read, 7u);
  EXPECT_EQ(opened.makers().control->read, 0u);
}

TEST(RingMemoryTest, WhatIsHandedOverKeepsNoDescriptor) {
  MUSTER_ASSERT_OK_AND_ASSIGN(RingMemory made, RingMemory::Make(kRingSize));
  MUSTER_ASSERT_OK_AND_ASSIGN(const RingMemory opened, RingMemory::Open(Copy(made), kRingSize));
  const int descriptor = made.descriptor();
  made.CloseDescriptor();
  EXPECT_EQ(::fcntl(descriptor, F_GETFD), -1);
  EXPECT_EQ(made.descriptor(), -1);
  EXPECT_EQ(opened.descriptor(), -1);
  made.makers().data[0] = std::byte{3};
  EXPECT_EQ(opened.makers().data[0], std::byte{3});
}

TEST(RingMemoryTest, CannotBeCutOffByThePeer) {
  MUSTER_ASSERT_OK_AND_ASSIGN(const RingMemory made, RingMemory::Make(kRingSize));
  EXPECT_NE(::ftruncate(made.descriptor(), 0), 0);
}

TEST(RingMemoryTest, WhatIsNotAsItShouldBeIsRefused) {
  constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  const size_t bytes = 4096 + 2 * kRingSize;
  EXPECT_TRUE(RingMemory::Open(File(bytes, kSeals), kRingSize).ok());
  for (const int lacks : {F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_SEAL}) {
    EXPECT_THAT(RingMemory::Open(File(bytes, kSeals & ~lacks), kRingSize),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not sealed")));
  }
  for (const size_t wrong : {bytes - 1, bytes + 1}) {
    EXPECT_THAT(RingMemory::Open(File(wrong, kSeals), kRingSize),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not the 135168")));
  }
  for (const size_t size :
       {size_t{0}, kRingSize / 2, kRingSize + 1, 2 * RingMemory::kRingBytesMax}) {
    EXPECT_THAT(RingMemory::Open(File(bytes, kSeals), size),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("a ring cannot have")));
    EXPECT_THAT(RingMemory::Make(size),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("a ring cannot have")));
  }
  const auto [pipe, unused] = FdPair();
  EXPECT_THAT(RingMemory::Open(OwnedFd(::dup(pipe.get())), kRingSize),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not sealed")));
}

TEST(RingMemoryTest, ADescriptorIsHandedOver) {
  const auto [here, there] = FdPair();
  EXPECT_THAT(ReceiveDescriptor(there.get()),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("not come yet")));
  MUSTER_ASSERT_OK_AND_ASSIGN(const RingMemory made, RingMemory::Make(kRingSize));
  ASSERT_EQ(::send(here.get(), "x", 1, 0), 1);
  ASSERT_TRUE(SendDescriptor(here.get(), made.descriptor()).ok());
  EXPECT_THAT(ReceiveDescriptor(there.get()),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("something else")));
  MUSTER_ASSERT_OK_AND_ASSIGN(OwnedFd received, ReceiveDescriptor(there.get()));
  EXPECT_TRUE(RingMemory::Open(std::move(received), kRingSize).ok());
  ::shutdown(here.get(), SHUT_WR);
  EXPECT_THAT(ReceiveDescriptor(there.get()),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("closed")));
}

TEST(RingMemoryTest, AnythingElseThanOneDescriptorIsRefusedAndNoneStaysOpen) {
  const auto [here, there] = FdPair();
  // Two of them, with one byte.
  std::array<int, 2> both = {here.get(), there.get()};
  char byte = 0;
  iovec piece{&byte, 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(both))> control{};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(both));
  std::memcpy(CMSG_DATA(header), both.data(), sizeof(both));
  ASSERT_EQ(::sendmsg(here.get(), &message, 0), 1);
  const OwnedFd lowest(::dup(here.get()));
  absl::StatusOr<OwnedFd> received = ReceiveDescriptor(there.get());
  // The kernel gives the one for which there is room, and closes the other one.
  if (received.ok()) {
    EXPECT_EQ(::fcntl(received->get(), F_GETFD), FD_CLOEXEC) << "a child would inherit it";
    EXPECT_FALSE(RingMemory::Open(*std::move(received), kRingSize).ok());
  }
  const OwnedFd next(::dup(here.get()));
  EXPECT_EQ(next.get(), lowest.get() + 1) << "a descriptor was left open";
  EXPECT_THAT(ReceiveDescriptor(-1), StatusIs(absl::StatusCode::kInvalidArgument, ::testing::_));
  EXPECT_THAT(
      SendDescriptor(here.get(), -1),
      StatusIs(absl::StatusCode::kUnavailable, HasSubstr("cannot hand shared memory over")));
}

}  // namespace
}  // namespace muster::net
