#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "master/core/servers/map_teller.h"
#include "proto/messages/control.h"

/// Workers and servers that consist only of their calls to the master, so thousands of them fit
/// into one process. They follow docs/protocol.md as far as the master can see. Pure; not
/// thread-safe.
namespace muster {

/// A worker that trains with every server and holds a few shards. It makes no progress unless it is
/// told to finish some.
class SimulatedWorker {
 public:
  explicit SimulatedWorker(uint32_t number);

  /// Its next call. `finish`: its shards are DONE, and it requests so many new ones.
  struct Wish {
    bool finish = false;
    uint32_t want = 0;
    /// Its figures of every server, which real workers report every 500 ms.
    bool peers = false;
  };
  WorkerExchangeRequest Request(const Wish& wish);
  /// `map`: null when its own is current.
  void Take(const WorkerExchangeReply& reply, const MapNews* map);

  const std::string& name() const { return name_; }
  uint64_t incarnation() const { return incarnation_; }
  MapVersion map_version() const { return map_version_; }
  size_t held() const { return held_.size(); }

 private:
  void TakeMap(const WorkerExchangeReply& news);

  const std::string name_;
  const uint64_t incarnation_;
  uint64_t sequence_ = 0;
  uint64_t said_ = 0;  // grows with every figure that it says
  LeaseToken newest_grant_;
  std::vector<HeldLease> held_;
  /// The servers in its newest map, with which it trains.
  MapVersion map_version_;
  std::map<ServerId, ServerIncarnation> servers_;
};

/// A server whose restores and snapshots take no time.
class SimulatedServer {
 public:
  explicit SimulatedServer(uint32_t number) : id_(number) {}

  /// Another process: it owns nothing, and must register.
  void StartAgain();
  RegisterServerRequest Registration() const;
  void Take(const RegisterServerReply& reply);
  /// `traffic`: of every partition; the real ones say it every 500 ms.
  ServerExchangeRequest Request(bool traffic);
  void Take(const ServerExchangeReply& reply);

  ServerId id() const { return id_; }
  std::string name() const { return "ps-" + std::to_string(id_.value()); }
  StartNumber start() const { return StartNumber(start_); }
  bool registered() const { return incarnation_ != ServerIncarnation(); }
  /// The master knows of all that it is to own.
  bool settled() const { return settled_; }

 private:
  const ServerId id_;
  uint64_t start_ = 0;  // which process, from 1; its nonce as well
  ServerIncarnation incarnation_;
  uint64_t sequence_ = 0;
  uint64_t forget_version_ = 0;
  bool settled_ = false;
  std::vector<OwnedPartition> owned_;
  std::vector<SnapshotReport> snapshots_;
};

}  // namespace muster
