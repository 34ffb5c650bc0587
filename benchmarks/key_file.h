#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace muster {

/// The keys of a benchmark, call by call. They are in a file that all compared programs read, so
/// all of them request the same rows in the same order. A value.
///
/// The file: uint64 words, little-endian: kKeyFileMagic, rows, keys a call, calls, then the keys of
/// all calls.
struct KeySequence {
  uint64_t rows = 0;  // every key is below it
  uint64_t keys_a_call = 0;
  std::vector<uint64_t> keys;  // [calls, keys_a_call]

  uint64_t calls() const { return keys.size() / keys_a_call; }
  /// The keys of call `number`; after the last call, the first one comes again.
  std::span<const uint64_t> Call(uint64_t number) const {
    return std::span(keys).subspan((number % calls()) * keys_a_call, keys_a_call);
  }
};

/// The same calls for several tables: of a key k, row k / tables of table k mod tables is meant. So
/// all tables together have as many rows as the one table of the sequence. A value.
class TableCalls {
 public:
  TableCalls(const KeySequence& sequence, uint64_t tables);
  uint64_t tables() const { return tables_; }
  /// The rows of a table in call `number`, in the order of the call; some tables may have none.
  std::span<const uint64_t> Rows(uint64_t number, uint64_t table) const {
    const uint64_t* const begin = &begin_[number % calls_ * (tables_ + 1) + table];
    return std::span(rows_).subspan(begin[0], begin[1] - begin[0]);
  }

 private:
  uint64_t tables_;
  uint64_t calls_;
  std::vector<uint64_t> rows_;   // by call, then by table
  std::vector<uint64_t> begin_;  // [calls, tables + 1]
};

inline constexpr uint64_t kKeyFileMagic = 0x315359454b42534dULL;  // "MSBKEYS1"
inline constexpr size_t kKeyFileHeaderWords = 4;

struct KeyDraw {
  uint64_t rows = 1'000'000;
  uint64_t keys_a_call = 10'000;
  uint64_t calls = 64;
  double exponent = 0.99;  // of zipf's law; 0: every row is as likely as any other
  uint64_t seed = 1;
};

/// Keys drawn with repeats: the row of rank r (from 1) with a probability in proportion to
/// r^-exponent. The seed permutes the ranks of rows, so rows that are neighbours in rank are not
/// neighbours in memory. The same draw gives the same keys. Requires rows, keys a call and calls
/// above 0.
KeySequence DrawKeys(const KeyDraw& draw);

/// Errors name the path.
absl::Status WriteKeyFile(const std::string& path, const KeySequence& sequence);
/// kInvalidArgument: it is no file of keys, is cut off, or has a key beyond the rows.
absl::StatusOr<KeySequence> ReadKeyFile(const std::string& path);

}  // namespace muster
