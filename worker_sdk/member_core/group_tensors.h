#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "proto/messages/group_control.h"

namespace muster::sdk {

/// The buckets and the state that a trainer has registered, in this order. kInvalidArgument means
/// that the call can never work; it changes nothing then. Pure. Not thread-safe.
class GroupTensors {
 public:
  static constexpr uint64_t kElementsMax = uint64_t{1} << 34;
  /// With this many bits, a minibatch may still have gradients up to 2^10.
  static constexpr uint32_t kFractionBitsMax = 40;

  /// Says what adds the buckets (GroupTensor::backend). Call it before the first bucket is added.
  void SetBackend(std::string_view name) { backend_ = name; }
  /// Returns the number of the bucket, counted from 0. `fraction_bits` is for kFixedPoint.
  absl::StatusOr<uint32_t> AddBucket(std::string_view name, uint64_t elements, GroupDtype dtype,
                                     uint32_t fraction_bits);
  /// `memory` has `elements` elements of this type. It must stay as long as the group exists.
  absl::Status AddState(std::string_view name, GroupDtype dtype, uint64_t elements,
                        std::span<std::byte> memory);
  /// From now on, nothing can be registered any more.
  void Close() { closed_ = true; }

  const std::vector<GroupTensor>& tensors() const { return tensors_; }
  /// The memory of the state, in order.
  const std::vector<std::span<std::byte>>& memory() const { return memory_; }

 private:
  absl::Status Check(std::string_view name, uint64_t elements) const;
  void Add(GroupTensor tensor);

  std::vector<GroupTensor> tensors_;
  std::vector<std::span<std::byte>> memory_;
  std::set<std::string, std::less<>> names_;
  std::string backend_;
  uint32_t buckets_ = 0;
  bool closed_ = false;
};

}  // namespace muster::sdk
