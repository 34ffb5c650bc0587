#include "net/ring.h"

#include <fmt/format.h>

#include "base/check.h"
#include "base/status.h"

namespace muster::net {
namespace {

/// A valid count only grows, and stays within [from, to].
absl::Status CheckCount(const char* what, uint64_t count, uint64_t before, uint64_t from,
                        uint64_t to) {
  if (count >= before && count >= from && count <= to) return absl::OkStatus();
  return absl::DataLossError(
      fmt::format("the shared ring says that {} bytes were {}, which is not between {} and {}",
                  count, what, before < from ? from : before, to));
}

// One side sets its sleep flag and then reads the count. The other side moves the count and then
// reads the flag. All four steps have one order (seq_cst), so at least one side sees what the other
// did, and no side sleeps while there is work.

/// Tells the peer that this side sleeps.
void SaySleeping(std::atomic<uint32_t>* sleeps) {
  sleeps->store(1, std::memory_order_seq_cst);
}

/// True if the peer sleeps; true only once for each sleep.
bool TakeSleeping(std::atomic<uint32_t>* sleeps) {
  return sleeps->load(std::memory_order_seq_cst) != 0 &&
         sleeps->exchange(0, std::memory_order_seq_cst) != 0;
}

}  // namespace

absl::StatusOr<std::span<std::byte>> RingWriter::Room() {
  const uint64_t read = space_.control->read.load(std::memory_order_seq_cst);
  const uint64_t from = written_ < space_.capacity ? 0 : written_ - space_.capacity;
  MUSTER_RETURN_IF_ERROR(CheckCount("read", read, read_, from, written_));
  read_ = read;
  std::byte* const begin = space_.data + (written_ & (space_.capacity - 1));
  return std::span<std::byte>(begin, space_.capacity - (written_ - read_));
}

bool RingWriter::Publish(size_t bytes) {
  MUSTER_CHECK(bytes <= space_.capacity - (written_ - read_));
  written_ += bytes;
  space_.control->written.store(written_, std::memory_order_seq_cst);
  return TakeSleeping(&space_.control->reader_sleeps);
}

absl::StatusOr<bool> RingWriter::Sleep() {
  SaySleeping(&space_.control->writer_sleeps);
  MUSTER_ASSIGN_OR_RETURN(const std::span<std::byte> room, Room());
  if (room.empty()) return true;
  space_.control->writer_sleeps.store(0, std::memory_order_relaxed);
  return false;
}

absl::StatusOr<std::span<std::byte>> RingReader::Bytes() {
  const uint64_t written = space_.control->written.load(std::memory_order_seq_cst);
  MUSTER_RETURN_IF_ERROR(
      CheckCount("written", written, written_, passed_, given_back_ + space_.capacity));
  written_ = written;
  std::byte* const begin = space_.data + (passed_ & (space_.capacity - 1));
  return std::span<std::byte>(begin, written_ - passed_);
}

void RingReader::Pass(size_t bytes) {
  MUSTER_CHECK(bytes <= written_ - passed_);
  passed_ += bytes;
}

bool RingReader::GiveBack(uint64_t until) {
  MUSTER_CHECK(until >= given_back_ && until <= passed_);
  given_back_ = until;
  space_.control->read.store(given_back_, std::memory_order_seq_cst);
  return TakeSleeping(&space_.control->writer_sleeps);
}

absl::StatusOr<bool> RingReader::Sleep(size_t have) {
  SaySleeping(&space_.control->reader_sleeps);
  MUSTER_ASSIGN_OR_RETURN(const std::span<const std::byte> bytes, Bytes());
  if (bytes.size() <= have) return true;
  StayAwake();
  return false;
}

void RingReader::StayAwake() {
  space_.control->reader_sleeps.store(0, std::memory_order_relaxed);
}

}  // namespace muster::net
