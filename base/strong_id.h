#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <utility>

namespace muster {

/// A number that cannot be mixed up with another kind of number. `Tag` is an incomplete struct that
/// names the kind. Ordered and hashable (absl and std); no arithmetic but Next().
template <typename Tag, typename Rep = uint64_t>
class StrongId {
 public:
  using rep = Rep;
  constexpr StrongId() = default;
  constexpr explicit StrongId(Rep value) : value_(value) {}
  constexpr Rep value() const { return value_; }
  constexpr StrongId Next() const { return StrongId(static_cast<Rep>(value_ + 1)); }
  friend constexpr auto operator<=>(const StrongId&, const StrongId&) = default;
  template <typename H>
  friend H AbslHashValue(H state, const StrongId& id) {
    return H::combine(std::move(state), id.value_);
  }
  friend std::string ToString(const StrongId& id) { return std::to_string(id.value_); }

 private:
  Rep value_ = 0;
};

}  // namespace muster

template <typename Tag, typename Rep>
struct std::hash<muster::StrongId<Tag, Rep>> {
  size_t operator()(const muster::StrongId<Tag, Rep>& id) const {
    return std::hash<Rep>{}(id.value());
  }
};
