#pragma once

#include <string>

#include "base/words/types.h"
#include "proto/messages/metrics.h"
#include "sharding/done_shards.h"

namespace muster {

struct DoneRecord {
  DoneShard done;
  std::string worker;
  ShardMetrics metrics;
  /// In a group with tables (PushedParts): a restored partition may lack parts of the shard.
  bool lacks_parts = false;
  /// The partitions had all parts as of this seq; 0: as of the shard's own.
  DoneSeq pushed_again;
  static void Fields(auto& f, auto& s) {
    f(1, "seq", s.done.seq), f(2, "shard", s.done.shard), f(3, "token", s.done.token);
    f(4, "worker", s.worker), f(5, "metrics", s.metrics);
    f(6, "lacks_parts", s.lacks_parts), f(7, "pushed_again", s.pushed_again);
  }
};
/// The DONE records with first <= seq <= last are gone.
struct EraseDone {
  DoneSeq first;
  DoneSeq last;
};

}  // namespace muster
