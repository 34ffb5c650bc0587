#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ps/core/requests.h"
#include "ps/engine/partition.h"

namespace muster::ps {

/// The progress of a request that is served in slices. OwnedPartitions and its parts fill it.
class RequestProgress final : public RequestNotes {
 private:
  friend class LaneTraffic;
  friend class Pulls;
  friend class Pushes;
  /// Counts the workers' requests to a partition in this process, and knows what is reported.
  struct Counted {
    uint64_t pulls = 0;
    uint64_t pushes = 0;
    uint64_t rows = 0;
    uint64_t bytes = 0;
    double service_ns = 0;
    bool changed = false;      // since the newest report
    uint64_t reported_in = 0;  // the exchange of a report that has no answer yet; 0: none
  };
  /// A partition's counts, and how many of its rows the request has served.
  struct Served {
    Counted* counted;
    uint64_t rows;
  };
  void Begin() {
    part = keys = floats = versions = 0;
    one_part = false;
    served.clear();
    BeginPart();
  }
  void BeginPart() {
    versions_of_part = versions;
    state = 0;
    in_part = {};
  }

  size_t part = 0;              // this many parts are answered
  size_t keys = 0;              // the keys of these parts
  size_t floats = 0;            // their values; for a pull only those in the reply
  size_t versions = 0;          // for a pull: the answered versions of finished groups
  size_t versions_of_part = 0;  // those of them that belong to finished parts
  uint64_t state = 0;           // number of the state that the part is applied to; 0: none yet
  PartProgress in_part;
  bool one_part = false;   // for a pull: parts are gathered one by one
  bool all_known = false;  // for a push: all its tables are known
  bool fits = false;       // for a push: it has the right number of values
  std::vector<Served> served;
};

}  // namespace muster::ps
