#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/messages/control.h"
#include "ps/core/lane_messages.h"

namespace muster::ps {

/// The server's side of the exchange with the master: builds requests out of the lanes' reports and
/// splits replies into what concerns each lane. Fences older masters. Pure; not thread-safe.
class ControlState {
 public:
  /// `registered`: the answer to the registration.
  ControlState(const RegisterServerReply& registered, uint32_t lane_count);

  /// The number of the next exchange: ask the lanes for their reports of it.
  uint64_t NextSequence() { return ++sequence_; }
  /// What the background threads could not do; empty: nothing of that kind.
  struct Errors {
    std::string warm_start;  // is tried again
    std::string fatal;       // is not
  };
  /// `reports`: the newest of every lane. That of a lane that is busy may be of an earlier
  /// exchange: what it says is repeated, and the reply counts for that report.
  ServerExchangeRequest MakeRequest(const std::vector<LaneReport>& reports, const Errors& errors);

  struct Orders {
    /// Not seen before, ids ascending. Call TableAdded for each, in order, when the lanes know it.
    std::vector<TableSpec> tables;
    /// One per lane.
    std::vector<LaneCommands> lanes;
    /// Nothing is left to wait for before the end.
    bool drained = false;
  };
  /// What the reply to the newest request demands. kFailedPrecondition: the master does not know
  /// this incarnation (any more); this process can only end. kAborted: the reply of an older
  /// master, nothing is to be done.
  absl::StatusOr<Orders> OnReply(const ServerExchangeReply& reply);
  void TableAdded(TableId table) { newest_table_ = table; }
  /// From now on the master is told that this server was told to end.
  void Leave() { leaving_ = true; }

 private:
  const ServerId id_;
  const ServerIncarnation incarnation_;
  const uint32_t lane_count_;
  MasterIncarnation master_;
  uint64_t sequence_ = 0;
  std::vector<uint64_t> reported_;  // by lane: the exchange that its report in the newest was for
  TableId newest_table_;            // the lanes know all up to this
  TableId table_ordered_;           // handed out by OnReply
  uint64_t forget_version_ = 0;
  bool leaving_ = false;
};

}  // namespace muster::ps
