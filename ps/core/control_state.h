#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/messages/control.h"
#include "ps/core/lane_messages.h"

namespace muster::ps {

/// The server's side of the exchange with the master: builds requests out of the lanes' reports and
/// splits replies into parts for each lane. Refuses older masters. Pure; not thread-safe.
class ControlState {
 public:
  /// `registered`: the answer to the registration.
  ControlState(const RegisterServerReply& registered, uint32_t lane_count);

  /// The number of the next exchange: ask the lanes for their reports of it.
  uint64_t NextSequence() { return ++sequence_; }
  /// Errors of the background threads; empty: none of that kind.
  struct Errors {
    std::string warm_start;  // will be retried
    std::string fatal;       // will not
  };
  /// `reports`: the newest report of every lane. The report of a busy lane may belong to an earlier
  /// exchange; it is then sent again, and the reply counts for it.
  ServerExchangeRequest MakeRequest(const std::vector<LaneReport>& reports, const Errors& errors);

  struct Orders {
    /// Not seen before, ids ascending. Call TableAdded for each, in order, when the lanes know it.
    std::vector<TableSpec> tables;
    /// One per lane.
    std::vector<LaneCommands> lanes;
    /// True if the server may end without a longer wait.
    bool drained = false;
  };
  /// The orders in the reply to the newest request. kFailedPrecondition: the master does not know
  /// this incarnation, or no longer; this process can only end. kAborted: the reply comes from an
  /// older master; ignore it.
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
