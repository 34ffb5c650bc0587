#include "benchmarks/key_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/file.h"
#include "base/random.h"
#include "base/status.h"

namespace muster {

KeySequence DrawKeys(const KeyDraw& draw) {
  MUSTER_CHECK(draw.rows > 0 && draw.keys_a_call > 0 && draw.calls > 0);
  Rng rng(draw.seed);
  std::vector<uint64_t> row_of_rank(draw.rows);
  std::iota(row_of_rank.begin(), row_of_rank.end(), 0);
  for (uint64_t i = draw.rows; i > 1; --i) std::swap(row_of_rank[i - 1], row_of_rank[rng.Below(i)]);
  std::vector<double> below(draw.rows);  // the weight of all ranks up to this one
  double sum = 0;
  for (uint64_t i = 0; i < draw.rows; ++i) {
    below[i] = sum += std::pow(static_cast<double>(i + 1), -draw.exponent);
  }
  KeySequence sequence{.rows = draw.rows, .keys_a_call = draw.keys_a_call, .keys = {}};
  sequence.keys.resize(draw.calls * draw.keys_a_call);
  for (uint64_t& key : sequence.keys) {
    const auto rank = std::ranges::upper_bound(below, rng.Uniform() * sum) - below.begin();
    key = row_of_rank[std::min(static_cast<uint64_t>(rank), draw.rows - 1)];
  }
  return sequence;
}

TableCalls::TableCalls(const KeySequence& sequence, uint64_t tables)
    : tables_(tables), calls_(sequence.calls()) {
  MUSTER_CHECK(tables > 0);
  rows_.reserve(sequence.keys.size());
  std::vector<std::vector<uint64_t>> rows(tables);
  for (uint64_t call = 0; call < calls_; ++call) {
    for (const uint64_t key : sequence.Call(call)) rows[key % tables].push_back(key / tables);
    for (std::vector<uint64_t>& of_table : rows) {
      begin_.push_back(rows_.size());
      rows_.insert(rows_.end(), of_table.begin(), of_table.end());
      of_table.clear();
    }
    begin_.push_back(rows_.size());
  }
}

absl::Status WriteKeyFile(const std::string& path, const KeySequence& sequence) {
  const uint64_t header[kKeyFileHeaderWords] = {kKeyFileMagic, sequence.rows, sequence.keys_a_call,
                                                sequence.calls()};
  std::string bytes(reinterpret_cast<const char*>(header), sizeof(header));
  bytes.append(reinterpret_cast<const char*>(sequence.keys.data()),
               sequence.keys.size() * sizeof(uint64_t));
  return WriteFileAtomically(path, bytes);
}

absl::StatusOr<KeySequence> ReadKeyFile(const std::string& path) {
  MUSTER_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  const std::string_view bytes = file.bytes();
  uint64_t header[kKeyFileHeaderWords] = {};
  if (bytes.size() >= sizeof(header)) std::memcpy(header, bytes.data(), sizeof(header));
  const auto [magic, rows, keys_a_call, calls] = header;
  const size_t words = bytes.size() / sizeof(uint64_t);
  if (magic != kKeyFileMagic || keys_a_call == 0 || calls == 0) {
    return absl::InvalidArgumentError(fmt::format("{}: it is not a file of keys", path));
  }
  if (bytes.size() % sizeof(uint64_t) != 0 || calls > words || keys_a_call > words ||
      words - kKeyFileHeaderWords != calls * keys_a_call) {
    return absl::InvalidArgumentError(fmt::format("{}: {} bytes do not hold {} calls of {} keys",
                                                  path, bytes.size(), calls, keys_a_call));
  }
  KeySequence sequence{.rows = rows, .keys_a_call = keys_a_call, .keys = {}};
  sequence.keys.resize(calls * keys_a_call);
  std::memcpy(sequence.keys.data(), bytes.data() + sizeof(header),
              sequence.keys.size() * sizeof(uint64_t));
  const auto wrong = std::ranges::find_if(sequence.keys, [&](uint64_t key) { return key >= rows; });
  if (wrong != sequence.keys.end()) {
    return absl::InvalidArgumentError(
        fmt::format("{}: the key {} is none of {} rows", path, *wrong, rows));
  }
  return sequence;
}

}  // namespace muster
