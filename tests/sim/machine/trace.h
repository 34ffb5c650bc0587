#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <iterator>
#include <string_view>
#include <utility>

#include "base/clock.h"

namespace muster::sim {

/// The story of one seed, a line an event, and its hash: two runs are the same if their hashes are.
class Trace {
 public:
  explicit Trace(bool print) : print_(print) {}

  template <typename... Args>
  void Add(TimePoint at, std::string_view actor, fmt::format_string<Args...> format,
           Args&&... args) {
    line_.clear();
    fmt::format_to(std::back_inserter(line_), "{:>9} {:<13} ", at.time_since_epoch().count() / 1000,
                   actor);
    fmt::format_to(std::back_inserter(line_), format, std::forward<Args>(args)...);
    Take();
  }
  uint64_t hash() const { return hash_; }
  uint64_t lines() const { return lines_; }

 private:
  void Take();

  const bool print_;
  fmt::basic_memory_buffer<char, 256> line_;
  uint64_t hash_ = 0;
  uint64_t lines_ = 0;
};

}  // namespace muster::sim
