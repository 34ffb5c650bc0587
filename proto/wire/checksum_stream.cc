#include "proto/wire/checksum_stream.h"

#define XXH_INLINE_ALL  // as frame.cc
#include <xxhash.h>

namespace muster::wire {

struct ChecksumStream::State {
  XXH3_state_t xxh3;
};

ChecksumStream::ChecksumStream() : state_(std::make_unique<State>()) {
  Reset();
}
ChecksumStream::~ChecksumStream() = default;

void ChecksumStream::Reset() {
  XXH3_64bits_reset(&state_->xxh3);
}

void ChecksumStream::Add(std::span<const std::byte> piece) {
  XXH3_64bits_update(&state_->xxh3, piece.data(), piece.size());
}

uint64_t ChecksumStream::value() const {
  return XXH3_64bits_digest(&state_->xxh3);
}

}  // namespace muster::wire
