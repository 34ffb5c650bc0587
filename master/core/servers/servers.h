#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "master/core/books.h"
#include "master/core/job_life.h"
#include "master/core/nodes/drains.h"
#include "master/core/servers/snapshots.h"
#include "master/core/table_registry.h"
#include "master/core/workers/leasing.h"

namespace muster {

/// The parameter servers: which process has a slot, what it reports, and what it is told.
///
/// Owns the newest server incarnation. Enforces of docs/protocol.md: a new process in a slot gets a
/// new incarnation and replaces the process before it in the same step (sections 4 and 5); a call
/// of a former process, or a call that a newer one overtook, does not change what is owned. Pure;
/// not thread-safe.
class Servers {
 public:
  /// All of them outlive it. `newest`: as journaled.
  Servers(const Books* books, PartitionTable* partitions, NodeTable* nodes, Leasing* leasing,
          JobLife* life, Snapshots* snapshots, Drains* drains, const TableRegistry* tables,
          ServerIncarnation newest)
      : books_(books),
        partitions_(partitions),
        nodes_(nodes),
        leasing_(leasing),
        life_(life),
        snapshots_(snapshots),
        drains_(drains),
        tables_(tables),
        newest_(newest) {}

  /// As MasterCore::RegisterServer.
  absl::StatusOr<RegisterServerReply> Register(const RegisterServerRequest& request, StepTime at);
  /// As MasterCore::ExchangeServer.
  ServerExchangeReply Exchange(const ServerExchangeRequest& request, StepTime at);
  /// Reports lost servers. Nothing else happens: their partitions wait for a new process.
  void Tick(StepTime at);
  ServerIncarnation newest() const { return newest_; }

 private:
  enum class Call : uint8_t {
    kUnknown,    // of a process that has no slot (any more)
    kOvertaken,  // by a newer one
    kNewest,
  };
  Call WhichCall(const ServerExchangeRequest& request) const;

  /// Gives the slot to the process.
  void Admit(const RegisterServerRequest& request, ServerId id, Node* node, StepTime at);
  void Hear(Node* node, StepTime at);
  void TakeOwned(const ServerExchangeRequest& request, Node* node, StepTime at);
  void CountParts(const ServerExchangeRequest& request, Node* node);
  void TakeErrors(const ServerExchangeRequest& request, Node* node, StepTime at);
  void TakeSnapshotError(const ServerExchangeRequest& request, Node* node, StepTime at);
  void TakeWarmStartError(const ServerExchangeRequest& request, Node* node, StepTime at);
  void TakeRestoreError(const ServerExchangeRequest& request, Node* node, StepTime at);
  /// Everything that the server must know and do.
  void Command(const ServerExchangeRequest& request, const Node& node, StepTime at,
               ServerExchangeReply* reply);

  const Books* const books_;
  PartitionTable* const partitions_;
  NodeTable* const nodes_;
  Leasing* const leasing_;
  JobLife* const life_;
  Snapshots* const snapshots_;
  Drains* const drains_;
  const TableRegistry* const tables_;
  ServerIncarnation newest_;
};

}  // namespace muster
