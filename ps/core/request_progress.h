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
  /// The workers' requests to a partition in this process, and how much of it is reported.
  struct Counted {
    uint64_t pulls = 0;
    uint64_t pushes = 0;
    uint64_t rows = 0;
    uint64_t bytes = 0;
    double service_ns = 0;
    bool changed = false;      // since the newest report
    uint64_t reported_in = 0;  // the exchange of a report without an answer yet; 0: none
  };
  /// What was served, and how many rows.
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

  size_t part = 0;              // parts before this one are answered,
  size_t keys = 0;              // and these are their keys,
  size_t floats = 0;            // and their values: of a push all, of a pull those in the reply
  size_t versions = 0;          // of a pull: those of groups before this one are answered
  size_t versions_of_part = 0;  // and these are of parts before this one
  uint64_t state = 0;           // the partition's that this part has to do with; 0: none yet
  PartProgress in_part;
  bool one_part = false;   // a pull: its parts are gathered one by one
  bool all_known = false;  // a push: all its tables,
  bool fits = false;       // and its values are as many as their rows have
  std::vector<Served> served;
};

}  // namespace muster::ps
