#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/messages/control.h"
#include "ps/core/lane_messages.h"

namespace muster::ps {

/// The server's side of the exchange with the master. It builds requests from the lanes' reports,
/// and splits replies into one part for each lane. It refuses replies of older masters. Pure; not
/// thread-safe.
class ControlState {
 public:
  /// `registered` is the master's answer to the registration.
  ControlState(const RegisterServerReply& registered, uint32_t lane_count);

  /// The number of the next exchange. The lanes are asked for their reports under this number.
  uint64_t NextSequence() { return ++sequence_; }
  /// The errors of the background threads. An empty text means that there is no such error.
  struct Errors {
    std::string warm_start;  // the server will retry
    std::string fatal;       // the server will not retry
  };
  /// `reports` has the newest report of every lane. The report of a busy lane may belong to an
  /// earlier exchange. It is then sent again, and the reply also counts for it.
  ServerExchangeRequest MakeRequest(const std::vector<LaneReport>& reports, const Errors& errors);

  struct Orders {
    /// The tables that are new to this server, by ascending id. Call TableAdded for each of them,
    /// in this order, when the lanes know it.
    std::vector<TableSpec> tables;
    /// One per lane.
    std::vector<LaneCommands> lanes;
    /// True if the server may end without a longer wait.
    bool drained = false;
  };
  /// Returns the orders in the reply to the newest request. kFailedPrecondition: the master does
  /// not know this incarnation, so this process can only end. kAborted: the reply comes from an
  /// older master and must be ignored.
  absl::StatusOr<Orders> OnReply(const ServerExchangeReply& reply);
  void TableAdded(TableId table) { newest_table_ = table; }
  /// From now on, requests tell the master that this server was told to end.
  void Leave() { leaving_ = true; }

 private:
  const ServerId id_;
  const ServerIncarnation incarnation_;
  const uint32_t lane_count_;
  MasterIncarnation master_;
  uint64_t sequence_ = 0;
  std::vector<uint64_t>
      reported_;          // by lane: the exchange to which its report in the newest request belongs
  TableId newest_table_;  // the lanes know all tables up to this one
  TableId table_ordered_;  // the newest table that OnReply has returned
  uint64_t forget_version_ = 0;
  bool leaving_ = false;
};

}  // namespace muster::ps
