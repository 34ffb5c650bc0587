#include "worker_sdk/member_core/group_tensors.h"

#include <utility>

#include "base/words/limits.h"

namespace muster::sdk {

absl::Status GroupTensors::Check(std::string_view name, uint64_t elements) const {
  auto invalid = [&](std::string_view why) {
    return absl::InvalidArgumentError(fmt::format("group tensor \"{}\": {}", name, why));
  };
  if (closed_) return invalid("register it before the first NextStep");
  if (name.empty() || name.size() > most::kNameBytes) {
    return invalid(fmt::format("a name has 1 to {} bytes", most::kNameBytes));
  }
  if (names_.contains(name)) return invalid("the name is taken; choose another");
  if (tensors_.size() >= most::kGroupTensors) {
    return invalid(fmt::format("a group has at most {} tensors", most::kGroupTensors));
  }
  if (elements > kElementsMax) {
    return invalid(fmt::format("it has {} elements, at most {}", elements, kElementsMax));
  }
  return absl::OkStatus();
}

absl::StatusOr<uint32_t> GroupTensors::AddBucket(std::string_view name, uint64_t elements,
                                                 GroupDtype dtype, uint32_t fraction_bits) {
  MUSTER_RETURN_IF_ERROR(Check(name, elements));
  if (elements == 0) {
    return absl::InvalidArgumentError(
        fmt::format("group bucket \"{}\" has no elements; leave it out", name));
  }
  bool fixed = dtype == GroupDtype::kFixedPoint;
  if (fixed && fraction_bits > kFractionBitsMax) {
    return absl::InvalidArgumentError(
        fmt::format("group bucket \"{}\" has fraction_bits {}, at most {}", name, fraction_bits,
                    kFractionBitsMax));
  }
  if (!fixed && dtype != GroupDtype::kFloat32 && dtype != GroupDtype::kBfloat16) {
    return absl::InvalidArgumentError(
        fmt::format("group bucket \"{}\" has a type that cannot be summed", name));
  }
  Add({std::string(name), dtype, elements, true, fixed ? fraction_bits : 0, backend_});
  return buckets_++;
}

absl::Status GroupTensors::AddState(std::string_view name, GroupDtype dtype, uint64_t elements,
                                    std::span<std::byte> memory) {
  MUSTER_RETURN_IF_ERROR(Check(name, elements));
  if (memory.data() == nullptr && !memory.empty()) {
    return absl::InvalidArgumentError(
        fmt::format("group tensor \"{}\": its memory is a null pointer", name));
  }
  Add({std::string(name), dtype, elements, false, 0, ""});
  memory_.push_back(memory);
  return absl::OkStatus();
}

void GroupTensors::Add(GroupTensor tensor) {
  names_.insert(tensor.name);
  tensors_.push_back(std::move(tensor));
}

}  // namespace muster::sdk
