#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "master/core/core_options.h"
#include "master/core/nodes/node_table.h"

namespace muster {

/// A process that another machine wants to run for the job (`muster join`).
struct JoinWish {
  NodeRole role = NodeRole::kWorker;
  std::string name;  // empty: the only one that there is
  std::string host;  // of the machine
  /// Of the caller's state directory: random, and the same at every call. Empty: unknown.
  std::string joiner = {};
};
struct Joining {
  std::string name;
  StartNumber first_start;  // larger than every earlier one of this node
};

/// The name and the start number with which such a process may run. kInvalidArgument for a name
/// that no joined node can have; kFailedPrecondition if the job has no such place, or if a live
/// node of another machine has it. Pure; changes nothing.
absl::StatusOr<Joining> JudgeJoin(const JoinWish& wish, const NodeTable& nodes,
                                  const CoreOptions& options);

/// Who has asked for which name. Two machines may have one host name, and two `muster join` may run
/// on one machine: without this, their processes would replace each other for ever. It is not
/// durable: after a restart of the master, every `muster join` asks again. Pure.
class Joiners {
 public:
  /// JudgeJoin(), and kFailedPrecondition while another joiner has the name: its node lives, or it
  /// asked so short a time ago that the node may not have begun.
  absl::StatusOr<Joining> Join(const JoinWish& wish, const NodeTable& nodes,
                               const CoreOptions& options, TimePoint now);
  /// It is told the job's status. `over`: and thereby that the job is over.
  void IsTold(const std::string& joiner, bool over, TimePoint now);
  /// The nodes whose joiners asked a short time ago, and do not know that the job is over.
  std::vector<std::string> EndUnheardBy(const NodeTable& nodes, TimePoint now) const;

 private:
  struct Holder {
    std::string joiner;
    TimePoint asked;
    StartNumber start;  // that it was told
    TimePoint heard;    // when it asked for anything
    bool knows_end = false;
  };
  std::map<std::string, Holder> holders_;
};

}  // namespace muster
