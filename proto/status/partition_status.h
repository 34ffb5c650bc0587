#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "proto/messages/node_figures.h"

/// Partitions of the weights as all readers see them. Part of the model of a job (job_status.h).
namespace muster {

struct PartitionStatus {
  static constexpr const char* kName = "PartitionStatus";
  uint32_t partition = 0;
  std::string owner;
  uint64_t owner_incarnation = 0;
  uint64_t owner_epoch = 0;
  std::string state = "unowned";
  uint64_t snapshot = 0;
  uint64_t snapshot_cut = 0;
  std::optional<uint64_t> snapshot_age_ms;
  uint32_t snapshot_files = 0;
  uint64_t snapshot_bytes = 0;
  PartitionTraffic traffic;
  static void Fields(auto& f, auto& p) {
    f(1, "partition", p.partition);
    f(2, "owner", p.owner, {"The node"});
    f(3, "owner_incarnation", p.owner_incarnation, {"0: the owner has no process yet"});
    f(4, "owner_epoch", p.owner_epoch, {"Grows with every new ownership"});
    f.Choice(5, "state", p.state, {"serving", "restoring", "unowned"},
             {"restoring: its owner does not serve this epoch yet; unowned: its owner has no "
              "process"});
    f(6, "snapshot", p.snapshot, {"Number of the one that counts; 0: none yet"});
    f(7, "snapshot_cut", p.snapshot_cut, {"Done shards up to this number are in it"});
    f(8, "snapshot_age_ms", p.snapshot_age_ms,
      {"null: there is none yet, or the master is younger than it"});
    f(9, "snapshot_files", p.snapshot_files);
    f(10, "snapshot_bytes", p.snapshot_bytes, {"Of the whole chain"});
    f(11, "traffic", p.traffic, {"As the owner's process last reported it"});
  }
};
struct PartitionList {
  static constexpr const char* kName = "PartitionList";
  uint64_t total = 0;
  uint64_t offset = 0;
  std::vector<PartitionStatus> partitions;
  static void Fields(auto& f, auto& p) {
    f(1, "total", p.total, {"On all pages"});
    f(2, "offset", p.offset, {"Of the first one here"});
    f(3, "partitions", p.partitions,
      {"Ascending; may be fewer than asked for: go on at offset plus their number"});
  }
};

}  // namespace muster
