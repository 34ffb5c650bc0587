#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ps/core/owned_partitions.h"
#include "ps/net/lane.h"

namespace muster::ps {

/// A lane's handler that owns every partition at epoch 1 and takes frames from any peer.
class BenchHandler : public FrameHandler {
 public:
  BenchHandler(uint32_t partitions, const std::vector<TableSpec>& tables);
  absl::StatusOr<wire::HelloReply> OnHello(const wire::Hello&) override {
    return wire::HelloReply{};
  }
  std::unique_ptr<RequestNotes> MakeNotes() override { return std::make_unique<RequestProgress>(); }
  Progress OnPull(const PullRequest& request, const Slice& slice, PullReply* reply) override {
    return owned_.Pull(request, slice, reply, static_cast<RequestProgress*>(slice.notes));
  }
  Progress OnPush(const PushRequest& request, const Slice& slice, PushReply* reply) override {
    return owned_.Push(request, slice, reply, static_cast<RequestProgress*>(slice.notes));
  }
  void OnServed(const ServedRequest& request, RequestNotes* notes) override {
    owned_.CountServed(request, static_cast<const RequestProgress&>(*notes));
  }

 protected:
  OwnedPartitions owned_;
};

/// A blocking client of one lane; any number of requests may be in flight. Ends the program when
/// anything goes wrong. One thread at a time.
class FrameClient {
 public:
  enum class Checksums { kOff, kOn };

  /// `address`: as Lane::Listen() gives it.
  FrameClient(const std::string& address, Checksums checksums);
  ~FrameClient();
  FrameClient(const FrameClient&) = delete;
  FrameClient& operator=(const FrameClient&) = delete;

  /// `header` has its kind, parts and encoding; the rest is filled in here.
  void Send(wire::Header header, const std::string& directory, std::span<const uint64_t> keys,
            std::span<const std::byte> values);
  /// Takes one reply; all its parts must be OK.
  void Receive();

 private:
  const int fd_;
  const Checksums checksums_;
  std::string directory_;
  std::vector<std::byte> values_;
};

}  // namespace muster::ps
