#pragma once

#include <algorithm>
#include <cstring>
#include <string>

#include "base/file.h"
#include "base/words/parts.h"
#include "proto/messages/shard_work.h"
#include "sharding/lines/source_pin.h"

namespace muster::testing {

/// A shard of all records of a file that is there, and pinned to what it contains now.
inline ShardWork WorkOnFile(const std::string& path, uint32_t minibatch_size,
                            DatasetMode mode = DatasetMode::kTrain) {
  const std::string contents = *ReadFile(path, 1 << 20);
  const uint64_t hash = PinSource(contents.size(), [&](uint64_t offset, std::span<char> buffer) {
                          const size_t n = std::min(buffer.size(), contents.size() - offset);
                          std::memcpy(buffer.data(), contents.data() + offset, n);
                          return absl::StatusOr<size_t>(n);
                        })->hash;
  const auto newlines = static_cast<uint32_t>(std::ranges::count(contents, '\n'));
  const uint32_t records = newlines + (contents.empty() || contents.ends_with('\n') ? 0 : 1);
  return {.mode = mode,
          .record_count = records,
          .minibatch_size = minibatch_size,
          .minibatch_count = static_cast<uint32_t>(DivideUp(records, minibatch_size)),
          .files = {{path, contents.size(), hash}},
          .runs = {{.record_count = records, .byte_end = contents.size()}}};
}

}  // namespace muster::testing
