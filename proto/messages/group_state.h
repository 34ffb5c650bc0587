#pragma once

#include <cstdint>
#include <string>

#include "base/words/limits.h"
#include "base/words/types.h"

/// The state of the model that a synchronous group trains, as its members and the master name it.
namespace muster {

/// How the elements of a tensor are stored, or how gradients are added.
enum class GroupDtype : uint8_t {
  kFloat32 = 0,
  kFloat64 = 1,
  kInt64 = 2,
  kBytes = 3,
  kBfloat16 = 4,  // sums only
  /// Sums only: float32 gradients are added as int64 multiples of 2^-fraction_bits, so the order of
  /// the additions does not matter.
  kFixedPoint = 5,
};

/// A tensor of the state of the model, or a bucket of gradients that is summed.
struct GroupTensor {
  std::string name;
  GroupDtype dtype = GroupDtype::kFloat32;
  uint64_t elements = 0;
  bool summed = false;         // a bucket
  uint32_t fraction_bits = 0;  // of kFixedPoint
  std::string backend;         // of a bucket: what adds it ("NCCL"); empty: the members' ring
  static void Fields(auto& f, auto& s) {
    f(1, "name", s.name, {.most = most::kNameBytes});
    f(2, "dtype", s.dtype, {.most = 5});
    f(3, "elements", s.elements);
    f(4, "summed", s.summed);
    f(5, "fraction_bits", s.fraction_bits, {.most = 62});
    f(6, "backend", s.backend, {.most = most::kNameBytes});
  }
  friend bool operator==(const GroupTensor&, const GroupTensor&) = default;
};

/// A whole state of the model: the one after this step of this lineage.
struct StateLabel {
  LineageNumber lineage;
  StepNumber step;
  static void Fields(auto& f, auto& s) { f(1, "lineage", s.lineage), f(2, "step", s.step); }
  friend auto operator<=>(const StateLabel&, const StateLabel&) = default;
};

/// A digest of a whole state as a member has it.
struct StateDigest {
  StateLabel label;
  /// XXH3 of all its bytes, in the order of registration.
  uint64_t value = 0;
  static void Fields(auto& f, auto& s) { f(1, "label", s.label), f(2, "value", s.value); }
  friend bool operator==(const StateDigest&, const StateDigest&) = default;
};

/// One of `stripes` equal pieces of a captured state, as a member holds or has stored it.
struct StateStripe {
  uint32_t stripe = 0;
  uint64_t bytes = 0;
  uint32_t crc = 0;    // CRC-32C
  std::string object;  // where it is stored, below the snapshot directory; empty: in memory only
  static void Fields(auto& f, auto& s) {
    f(1, "stripe", s.stripe, {.most = most::kMembers});
    f(2, "bytes", s.bytes), f(3, "crc", s.crc);
    f(4, "object", s.object, {.most = 1'024});
  }
  friend bool operator==(const StateStripe&, const StateStripe&) = default;
};

/// Pieces of the stored state that a process was told to copy, and could not read.
struct UnreadableState {
  uint32_t pieces = 0;  // how many it lacks
  std::string error;    // of one of them: where it is, and what is wrong
  static void Fields(auto& f, auto& s) {
    f(1, "pieces", s.pieces, {.most = most::kMembers}), f(2, "error", s.error);
  }
  friend bool operator==(const UnreadableState&, const UnreadableState&) = default;
};

}  // namespace muster
