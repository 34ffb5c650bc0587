#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <utility>
#include <variant>

#include "proto/fields/fields.h"

namespace muster::testing {

/// Gives every field of a list a value that no other has (but for true, and numbers with a limit),
/// and every list one entry.
class Fill {
 public:
  static constexpr uint64_t kFirst = 200;
  /// The alternative of a variant.
  explicit Fill(size_t alternative) : alternative_(alternative) {}

  template <typename T>
  void operator()(uint32_t /*number*/, const char* /*name*/, T& member,
                  const fields::About& about = {}) {
    To(&member, about.most);
  }
  void Choice(uint32_t number, const char* name, std::string& member, fields::Choices,
              const fields::About& about = {}) {
    (*this)(number, name, member, about);
  }

  template <typename T>
  void To(T* to, uint64_t most) {
    if constexpr (fields::IsNumber<T>) {
      ++next_;
      *to = fields::FromNumber<T>(most == 0 || next_ <= most ? next_ : 1 + next_ % most);
    } else if constexpr (fields::IsWord<T>) {
      *to = static_cast<T>(1);
    } else if constexpr (std::is_floating_point_v<T>) {
      *to = static_cast<T>(++next_);
    } else if constexpr (std::is_same_v<T, std::string>) {
      *to = fmt::format("t{}", ++next_);
    } else if constexpr (fields::kIsOptional<T>) {
      To(&to->emplace(), most);
    } else if constexpr (fields::kIsVector<T>) {
      To(&to->emplace_back(), 0);
    } else if constexpr (fields::kIsPair<T>) {
      To(&to->first, 0), To(&to->second, 0);
    } else if constexpr (fields::kIsMap<T>) {
      typename T::key_type key{};
      To(&key, 0);
      To(&(*to)[key], 0);
    } else if constexpr (fields::IsIntervals<T>) {
      to->Add(next_ + 1, next_ + 2);
      next_ += 2;
    } else if constexpr (fields::kIsVariant<T>) {
      Choose(to, std::make_index_sequence<std::variant_size_v<T>>());
    } else {
      T::Fields(*this, *to);
    }
  }

 private:
  template <typename Variant, size_t... Is>
  void Choose(Variant* to, std::index_sequence<Is...>) {
    const size_t chosen = alternative_ % sizeof...(Is);
    (void)((Is == chosen && (To(&to->template emplace<Is>(), 0), true)) || ...);
  }

  size_t alternative_;
  uint64_t next_ = kFirst;
};
inline constexpr size_t kAlternatives = 8;  // the most that a variant has

template <typename S>
S Filled(size_t alternative = 0) {
  S value{};
  Fill(alternative).To(&value, 0);
  return value;
}

}  // namespace muster::testing
