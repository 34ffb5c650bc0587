#include "worker_sdk/member/stored_stripes.h"

#include <fmt/format.h>
#include <pthread.h>

#include <cstdio>
#include <string_view>
#include <utility>

#include "base/checksum/crc32c.h"
#include "base/clock.h"
#include "base/failpoint.h"
#include "base/file.h"
#include "base/status.h"

namespace muster::internal {
namespace {

/// The master's journal may be on the same device, and every step waits for its sync.
constexpr size_t kWrittenBytes = size_t{4} << 20;

/// The name comes from the network: it has no part that leads out of the place.
absl::Status CheckObject(std::string_view object) {
  if (!object.empty() && object.front() != '/' && object.find("..") == std::string_view::npos) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      fmt::format("the master names a piece of the state \"{}\"", object));
}

}  // namespace

absl::Status StoreStripe(ObjectStore* store, const std::string& object,
                         std::span<const std::byte> bytes, const StripeProgress& moved) {
  MUSTER_RETURN_IF_ERROR(CheckObject(object));
  MUSTER_ASSIGN_OR_RETURN(LocalFile staged, store->Stage(object + ".tmp"));
  MUSTER_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Open(staged.path()));
  const std::string_view contents(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  for (size_t offset = 0; offset < contents.size(); offset += kWrittenBytes) {
    const std::string_view piece = contents.substr(offset, kWrittenBytes);
    MUSTER_RETURN_IF_ERROR(file.WriteAt(offset, piece));
    file.WriteBack(offset, piece.size());
    MUSTER_RETURN_IF_ERROR(moved(piece.size()));
  }
  MUSTER_RETURN_IF_ERROR(SyncPath(staged.path()));
  return store->PublishLarge(std::move(staged), object,
                             [&](uint64_t more) { static_cast<void>(moved(more)); });
}

absl::Status LoadStripe(ObjectStore* store, const StateStripe& stripe,
                        std::span<const std::span<std::byte>> pieces, const StripeProgress& moved) {
  MUSTER_RETURN_IF_ERROR(CheckObject(stripe.object));
  MUSTER_ASSIGN_OR_RETURN(
      const LocalFile fetched,
      store->FetchLarge(stripe.object, [&](uint64_t more) { static_cast<void>(moved(more)); }));
  MUSTER_ASSIGN_OR_RETURN(const InputFile file, InputFile::Open(fetched.path()));
  const auto damaged = [&](std::string_view why) {
    return absl::DataLossError(
        fmt::format("{} is damaged: it {}", store->Shown(stripe.object), why));
  };
  uint64_t offset = 0;
  uint32_t crc = 0;
  for (const std::span<std::byte> piece : pieces) {
    MUSTER_ASSIGN_OR_RETURN(const size_t read, file.ReadAt(offset, piece));
    offset += read;
    if (read < piece.size()) {
      return damaged(fmt::format("has {} bytes instead of {}", offset, stripe.bytes));
    }
    crc = Crc32c(piece, crc);
    MUSTER_RETURN_IF_ERROR(moved(read));
  }
  std::byte more[1];
  MUSTER_ASSIGN_OR_RETURN(const size_t left, file.ReadAt(offset, more));
  if (left > 0) return damaged(fmt::format("has more than {} bytes", stripe.bytes));
  if (crc == stripe.crc) return absl::OkStatus();
  return damaged(fmt::format("has the checksum {:08x} instead of {:08x}", crc, stripe.crc));
}

StripeStorer::StripeStorer(ObjectStore* store, std::chrono::milliseconds pause)
    : store_(store), pause_(pause), thread_([this] { Run(); }) {
  pthread_setname_np(thread_.native_handle(), "muster-store");
}

StripeStorer::~StripeStorer() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.SignalAll();
  }
  thread_.join();
}

void StripeStorer::Store(std::string object, collectives::LentBytes bytes, Done done) {
  MutexLock lock(&mutex_);
  ++number_;
  next_ = Piece{std::move(object), std::move(bytes), std::move(done)};
  changed_.SignalAll();
}

void StripeStorer::Drop() {
  MutexLock lock(&mutex_);
  ++number_;
  next_.reset();
  changed_.SignalAll();
}

uint64_t StripeStorer::written() const {
  MutexLock lock(&mutex_);
  return written_;
}

void StripeStorer::Run() {
  while (true) {
    Piece piece;
    uint64_t number = 0;
    {
      MutexLock lock(&mutex_);
      while (!stopping_ && !next_.has_value()) changed_.Wait(&mutex_);
      if (stopping_) return;
      piece = *std::exchange(next_, std::nullopt);
      number = number_;
    }
    uint64_t best = 0;
    while (true) {
      const absl::Status status = Try(piece, number, &best);
      {
        MutexLock lock(&mutex_);
        if (!IsWanted(number)) break;
      }
      if (!piece.done(status) || status.ok()) break;
      PauseAfterError(number);
    }
  }
}

absl::Status StripeStorer::Try(const Piece& piece, uint64_t number, uint64_t* best) {
  uint64_t tried = 0;
  MUSTER_FAILPOINT("group.before-store");
  absl::Status status = StoreStripe(store_, piece.object, piece.bytes.bytes, [&](size_t bytes) {
    MutexLock lock(&mutex_);
    tried += bytes;
    written_ += std::max(tried, *best) - *best;
    *best = std::max(tried, *best);
    return IsWanted(number) ? absl::OkStatus()
                            : absl::AbortedError("another piece is to be stored");
  });
  MUSTER_FAILPOINT("group.after-store");
  const bool aborted = absl::IsAborted(status);
  // A full disk stays full for long.
  if (!status.ok() && !aborted && said_ != Message(status)) {
    std::fprintf(stderr, "muster: a piece of the group's state cannot be stored: %s\n",
                 std::string(Message(status)).c_str());
  }
  if (!aborted) said_ = Message(status);
  return status;
}

void StripeStorer::PauseAfterError(uint64_t number) {
  const SystemClock clock;
  const TimePoint until = clock.Now() + pause_;
  MutexLock lock(&mutex_);
  while (IsWanted(number) && clock.Now() < until) changed_.WaitFor(&mutex_, until - clock.Now());
}

}  // namespace muster::internal
