#pragma once

#include <bit>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

/// A struct that crosses a wire lists its fields once, beside its members:
///
///   static void Fields(auto& f, auto& s) {
///     f(1, "name", s.name, {.most = 256});
///     f(2, "phase", s.phase, {.most = 2});
///   }
///
/// in ascending order of the numbers in its .proto message; 0: it is in none. Everything that goes
/// through all fields is a visitor of this list: encode.h, decode.h, the documents of json.h, the
/// metrics of scaler/rest, the tests that compare it with the .proto file. What a member is on the
/// wire follows from its type:
///
///   unsigned, bool, enum, StrongId, FencedCounter, duration: a number, left out when it is 0
///   float, double, std::string: the same
///   enum with FromWord(): its word; documents have the word of any enum with WordsOf()
///   struct with a list: a message, there even when it is empty
///   std::optional: left out when it has no value
///   std::vector: repeated, numbers packed; of vectors: messages {1: repeated}
///   std::pair<A, B>: a message {1: A, 2: B}
///   std::map<std::string, V>: messages {1: name, V's list from 2 on}; V without a list: a map
///   std::map<std::pair<A, B>, V>: messages {1: A, 2: B, 3: V}
///   IntervalSet: messages {1: begin, 2: end}
///   std::variant: a message {1: index, the alternative's list}
///
/// A struct may have a check that types cannot express: `std::optional<std::string> Wrong() const`
/// returns why the read values are refused.
namespace muster::fields {

/// The properties of a field besides its name and type.
struct About {
  /// A description for people, if name and unit do not say everything.
  std::string_view says = "";
  /// The largest accepted value: entries of a list, bytes of a text, or the largest number. 0:
  /// kListMost, kTextMost, any number.
  uint64_t most = 0;
  /// Of each text in a list, of the names in a map; 0: kTextMost.
  uint64_t text_most = 0;
  /// Of each list in a list; 0: kListMost.
  uint64_t inner_most = 0;
  /// The name of the field that has such a list.
  const char* inner = "";
  /// A number that always takes 8 bytes: hashes, seeds.
  bool fixed = false;
  /// A text that need not be UTF-8, `bytes` in the .proto file: names of files.
  bool raw = false;
  /// A gauge: a present value, which may fall. Other numbers are running totals (metrics).
  bool gauge = false;
};
inline constexpr uint64_t kListMost = 1 << 20;
inline constexpr uint64_t kTextMost = 4'096;

/// Limits and UTF-8 are checked for peers only. Data from our own disk is read as it is.
enum class Side : uint8_t { kPeer, kOwnDisk };

/// The texts that a member may be: `f.Choice(2, "mode", d.mode, {"train", "evaluate"})`. On the
/// wire it is a text like any other: a newer program may know more of them.
using Choices = std::initializer_list<const char*>;

/// A visitor that does nothing.
struct Nothing {
  void operator()(uint32_t, const char*, auto&, const About& = {}) {}
  void Choice(uint32_t, const char*, auto&, Choices, const About& = {}) {}
};
template <typename T>
concept Listed = requires(Nothing& nothing, T& value) { T::Fields(nothing, value); };

template <typename T>
concept IsStrongId = requires(const T& id) {
  typename T::rep;
  { id.value() } -> std::same_as<typename T::rep>;
};
template <typename T>
concept IsFenced = requires(uint64_t value) {
  { T::FromValue(value) } -> std::same_as<T>;
};
template <typename T>
inline constexpr bool kIsDuration = false;
template <typename Rep, typename Period>
inline constexpr bool kIsDuration<std::chrono::duration<Rep, Period>> = true;

/// An enum that is written as a word, with these two functions beside it. FromWord() returns false
/// for an unknown word.
template <typename T>
concept IsWord = std::is_enum_v<T> && requires(T& value, std::string_view word) {
  { FromWord(word, &value) } -> std::same_as<bool>;
  { ToString(value) } -> std::convertible_to<std::string_view>;
};

/// An enum that has a word for each of its numbers, in their order: documents show the words.
template <typename T>
concept HasWords = std::is_enum_v<T> && requires(const T& value) {
  { WordsOf(value) } -> std::convertible_to<std::span<const std::string_view>>;
  { ToString(value) } -> std::convertible_to<std::string_view>;
};

/// A type that is a number on the wire; the two functions below convert it.
template <typename T>
concept IsNumber = std::unsigned_integral<T> || (std::is_enum_v<T> && !IsWord<T>) ||
                   IsStrongId<T> || IsFenced<T> || kIsDuration<T>;
template <IsNumber T>
uint64_t ToNumber(const T& value) {
  if constexpr (IsStrongId<T> || IsFenced<T>) {
    return value.value();
  } else if constexpr (kIsDuration<T>) {
    return static_cast<uint64_t>(value.count());
  } else {
    return static_cast<uint64_t>(value);
  }
}
template <IsNumber T>
T FromNumber(uint64_t number) {
  if constexpr (IsFenced<T>) {
    return T::FromValue(number);
  } else if constexpr (IsStrongId<T>) {
    return T(static_cast<typename T::rep>(number));
  } else if constexpr (kIsDuration<T>) {
    return T(static_cast<typename T::rep>(number));
  } else {
    return static_cast<T>(number);
  }
}

template <typename T>
inline constexpr bool kIsOptional = false;
template <typename T>
inline constexpr bool kIsOptional<std::optional<T>> = true;
template <typename T>
inline constexpr bool kIsVector = false;
template <typename T>
inline constexpr bool kIsVector<std::vector<T>> = true;
template <typename T>
inline constexpr bool kIsVariant = false;
template <typename... Ts>
inline constexpr bool kIsVariant<std::variant<Ts...>> = true;
template <typename T>
inline constexpr bool kIsMap = false;
template <typename K, typename V>
inline constexpr bool kIsMap<std::map<K, V>> = true;
template <typename T>
inline constexpr bool kIsPair = false;
template <typename A, typename B>
inline constexpr bool kIsPair<std::pair<A, B>> = true;
template <typename T>
concept IsIntervals = requires(T& set, uint64_t n) {
  set.intervals();
  set.Add(n, n);
};

/// Sets all members of a list to 0 or empty, because an absent field means 0, whatever the default
/// of the member.
struct Clear {
  template <typename T>
  void operator()(uint32_t number, const char* /*name*/, T& member, const About& /*about*/ = {}) {
    if (number != 0) To(&member);
  }
  void Choice(uint32_t number, const char* name, std::string& member, Choices,
              const About& about = {}) {
    (*this)(number, name, member, about);
  }
  template <typename T>
  void To(T* value) {
    if constexpr (kIsVariant<T>) {
      value->template emplace<0>();
    } else if constexpr (Listed<T>) {
      T::Fields(*this, *value);
    } else {
      *value = T{};
    }
  }
};

}  // namespace muster::fields
