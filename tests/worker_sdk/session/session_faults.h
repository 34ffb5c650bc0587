#pragma once

#include "tests/worker_sdk/session/session_fixture.h"

namespace muster {

/// A session whose master and server do something wrong.
class SessionWithFaultsTest : public SessionTest {
 protected:
  SessionOptions Options() {
    return {.master_address = master_.address(),
            .worker_name = "worker-0",
            .slot_file = dir_.File("slot")};
  }
  Table SumTable(Session& session) {
    return session.SparseTable({.name = "t", .dim = 2, .optimizer = Sum{}});
  }
  /// So many more exchanges have been answered.
  void AwaitExchanges(int count) {
    int until = 0;
    master_.WaitFor([&] {
      if (until == 0) until = master_.exchanges + count;
      return master_.exchanges >= until;
    });
  }
  /// An error for the first `count` calls.
  FakeMaster::Faults::Fault Times(int count, grpc::StatusCode code) {
    return [this, count, code]() mutable {
      ++faults_;
      return count-- > 0 ? grpc::Status(code, "as planted") : grpc::Status::OK;
    };
  }
  /// Read it within WaitFor, or when no call is made.
  int faults_ = 0;
};

}  // namespace muster
