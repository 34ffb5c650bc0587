#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "proto/messages/metrics.h"

namespace muster {

/// The details of a shard while it is DONE.
struct DoneDetail {
  std::string worker;
  /// Records that it trained.
  uint32_t records = 0;
  ShardMetrics metrics;
};

/// The details of all DONE shards, in the order in which they became DONE. There may be millions of
/// them: each takes 16 bytes, and its packed metrics if there are metrics besides the number of
/// records. Pure; not thread-safe.
class DoneDetails {
 public:
  void Add(const std::string& worker, uint32_t records, const ShardMetrics& metrics);
  /// Removes the first, or the last. Requires: it is not empty.
  DoneDetail TakeFirst();
  DoneDetail TakeLast();
  /// A copy. Requires: index < size().
  DoneDetail At(size_t index) const { return Read(slots_[index]); }
  size_t size() const { return slots_.size(); }
  /// The number of kept names of workers that ran any of them.
  size_t worker_count() const { return places_.size(); }
  /// The approximate memory of DONE shards, with their places in the queue.
  uint64_t bytes() const { return bytes_; }

 private:
  struct Slot {
    uint32_t worker = 0;  // a place in workers_
    uint32_t records = 0;
    /// Null: the metrics are the number of records.
    std::unique_ptr<const std::string> metrics;
  };
  /// A worker, and how many slots name it; none: the place is free.
  struct Worker {
    std::string name;
    uint64_t slots = 0;
  };
  uint32_t PlaceOf(const std::string& worker);
  DoneDetail Read(const Slot& slot) const;
  DoneDetail Unpack(const Slot& slot);
  static uint64_t BytesOf(const Slot& slot);

  std::deque<Slot> slots_;
  std::vector<Worker> workers_;
  std::map<std::string, uint32_t> places_;
  std::vector<uint32_t> free_;
  uint64_t bytes_ = 0;
};

}  // namespace muster
