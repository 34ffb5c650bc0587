#pragma once

#include <fmt/format.h>

#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "absl/status/statusor.h"
#include "base/text.h"
#include "proto/fields/fields.h"
#include "proto/fields/protozero.h"

namespace muster::fields {

/// Where a value is, for errors: "held.phase".
struct At {
  const At* in = nullptr;
  const char* name = "";

  std::string Path() const {
    const std::string outer = in == nullptr ? "" : in->Path();
    if (outer.empty() || *name == '\0') return outer + name;
    return outer + "." + name;
  }
  [[noreturn]] void Refuse(std::string_view why) const {
    const std::string path = Path();
    throw std::runtime_error(fmt::format("{}{}{}", path, path.empty() ? "" : ": ", why));
  }
};

/// Reads one field into the member that the list has for its number. Visits the whole list for
/// every field of a message.
class WireReader {
 public:
  WireReader(protozero::pbf_reader* in, const At* at, Side side) : in_(in), at_(at), side_(side) {}

  template <typename T>
  void operator()(uint32_t number, const char* name, T& member, const About& about = {}) {
    if (number != in_->tag() || taken_) return;
    taken_ = true;
    const At here{at_, name};
    Get(here, &member, about);
  }
  void Choice(uint32_t number, const char* name, std::string& member, Choices,
              const About& about = {}) {
    (*this)(number, name, member, about);
  }

  /// Reads a whole message. Fields that no list knows are skipped.
  template <Listed T>
  static void Message(protozero::pbf_reader in, const At& at, Side side, T* to) {
    Each(in, at, side, [to](WireReader& f) { T::Fields(f, *to); });
    Check(at, *to);
  }

 private:
  template <typename Read>
  static void Each(protozero::pbf_reader in, const At& at, Side side, const Read& read) {
    while (in.next()) {
      WireReader f(&in, &at, side);
      read(f);
      if (!f.taken_) in.skip();
    }
  }

  template <typename T>
  static void Check(const At& at, const T& value, std::string_view entry = "") {
    if constexpr (requires { value.Wrong(); }) {
      const std::optional<std::string> wrong = value.Wrong();
      if (wrong.has_value()) at.Refuse(fmt::format("{}{}", entry, *wrong));
    }
  }

  template <typename T>
  void Get(const At& at, T* to, const About& about) {
    if constexpr (IsNumber<T>) {
      const uint64_t number = about.fixed ? in_->get_fixed64() : in_->get_uint64();
      if (about.most != 0 && number > about.most) {
        at.Refuse(fmt::format("{} is not a known value (0 to {})", number, about.most));
      }
      *to = FromNumber<T>(number);
    } else if constexpr (IsWord<T>) {
      std::string word;
      GetText(at, &word, about);
      if (!FromWord(word, to)) at.Refuse(fmt::format("'{}' is not a known value", word));
    } else if constexpr (std::is_same_v<T, float>) {
      *to = in_->get_float();
    } else if constexpr (std::is_same_v<T, double>) {
      *to = in_->get_double();
    } else if constexpr (std::is_same_v<T, std::string>) {
      GetText(at, to, about);
    } else if constexpr (kIsOptional<T>) {
      if (!to->has_value()) Clear{}.To(&to->emplace());
      Get(at, &**to, about);
    } else if constexpr (kIsVector<T>) {
      GetEntry(at, to, about);
    } else if constexpr (kIsPair<T>) {
      Each(in_->get_message(), at, side_,
           [to](WireReader& f) { f(1, "", to->first), f(2, "", to->second); });
    } else if constexpr (kIsMap<T>) {
      GetMapEntry(at, to, about);
    } else if constexpr (IsIntervals<T>) {
      GetInterval(at, to, about.most);
    } else if constexpr (kIsVariant<T>) {
      GetVariant(at, to);
    } else {
      Message(in_->get_message(), at, side_, to);
    }
  }

  void GetText(const At& at, std::string* to, const About& about) {
    const protozero::data_view view = in_->get_view();
    if (side_ == Side::kPeer) {
      const uint64_t most = about.most == 0 ? kTextMost : about.most;
      if (view.size() > most) {
        at.Refuse(fmt::format("{} bytes are more than the limit of {}", view.size(), most));
      }
      if (!about.raw && !IsValidUtf8({view.data(), view.size()})) at.Refuse("is not UTF-8");
    }
    to->assign(view.data(), view.size());
  }

  void CheckCount(const At& at, size_t count, uint64_t most) const {
    if (side_ != Side::kPeer) return;
    if (most == 0) most = kListMost;
    if (count <= most) return;
    at.Refuse(fmt::format("{} entries are more than the limit of {}", count, most));
  }

  template <typename T>
  void GetEntry(const At& at, std::vector<T>* list, const About& about) {
    if constexpr (IsNumber<T>) {
      GetNumbers(at, list, about.most);
    } else {
      CheckCount(at, list->size() + 1, about.most);
      T& entry = list->emplace_back();
      if constexpr (kIsVector<T>) {
        const About inner{.most = about.inner_most, .text_most = about.text_most};
        Each(in_->get_message(), at, side_,
             [&](WireReader& f) { f(1, about.inner, entry, inner); });
      } else {
        Clear{}.To(&entry);
        Get(at, &entry, About{.most = about.text_most});
      }
    }
  }

  /// Packed, or one at a time.
  template <typename T>
  void GetNumbers(const At& at, std::vector<T>* list, uint64_t most) {
    static_assert(!std::is_enum_v<T>, "whose values are to be checked");
    if (in_->has_wire_type(protozero::pbf_wire_type::varint)) {
      CheckCount(at, list->size() + 1, most);
      list->push_back(FromNumber<T>(in_->get_uint64()));
      return;
    }
    if (!in_->has_wire_type(protozero::pbf_wire_type::length_delimited)) ThrowMalformed();
    const auto numbers = in_->get_packed_uint64();
    const size_t count = list->size() + static_cast<size_t>(numbers.size());
    CheckCount(at, count, most);
    if (list->empty()) list->reserve(count);  // a list in many pieces just grows
    for (const uint64_t number : numbers) list->push_back(FromNumber<T>(number));
  }

  template <typename K, typename V>
  void GetMapEntry(const At& at, std::map<K, V>* map, const About& about) {
    CheckCount(at, map->size() + 1, about.most);
    K key{};
    V value{};
    Clear{}.To(&value);
    const About text{.most = about.text_most};
    Each(in_->get_message(), at, side_, [&](WireReader& f) {
      if constexpr (kIsPair<K>) {
        f(1, "", key.first), f(2, "", key.second), f(3, "", value, {.most = about.inner_most});
      } else if constexpr (Listed<V>) {
        f(1, "name", key, text);
        V::Fields(f, value);
      } else {
        f(1, "key", key, text), f(2, "value", value, text);
      }
    });
    if constexpr (Listed<V>) Check(at, value, fmt::format("'{}': ", key));
    map->insert_or_assign(std::move(key), std::move(value));  // as Protobuf does: the last counts
  }

  template <IsIntervals T>
  void GetInterval(const At& at, T* set, uint64_t most) {
    CheckCount(at, set->intervals().size() + 1, most);
    uint64_t begin = 0, end = 0;
    Each(in_->get_message(), at, side_,
         [&](WireReader& f) { f(1, "begin", begin), f(2, "end", end); });
    if (begin >= end) at.Refuse(fmt::format("[{}, {}) is empty", begin, end));
    set->Add(begin, end);
  }

  template <typename... Ts>
  void GetVariant(const At& at, std::variant<Ts...>* to) {
    const protozero::pbf_reader message = in_->get_message();
    uint32_t kind = 0;
    Each(message, at, side_,
         [&kind](WireReader& f) { f(1, "kind", kind, {.most = sizeof...(Ts) - 1}); });
    *to = Alternative<std::variant<Ts...>>(kind, std::index_sequence_for<Ts...>());
    std::visit(
        [&]<typename T>(T& one) {
          Clear{}.To(&one);
          Each(message, at, side_, [&one](WireReader& f) { T::Fields(f, one); });
        },
        *to);
  }
  template <typename Variant, size_t... Is>
  static Variant Alternative(size_t index, std::index_sequence<Is...>) {
    Variant made;
    (void)((Is == index && (made.template emplace<Is>(), true)) || ...);
    return made;
  }

  protozero::pbf_reader* const in_;
  const At* const at_;
  const Side side_;
  bool taken_ = false;
};

/// Malformed bytes and exceeded limits are kInvalidArgument, naming the field, the value and the
/// limit. Fields that the list does not have are skipped, absent ones are 0.
template <Listed S>
absl::StatusOr<S> Decode(std::string_view bytes, Side side = Side::kPeer) {
  S value;
  Clear{}.To(&value);
  try {
    WireReader::Message(protozero::pbf_reader(bytes.data(), bytes.size()), At{}, side, &value);
  } catch (const std::exception& error) {
    return absl::InvalidArgumentError(error.what());
  }
  return value;
}

}  // namespace muster::fields
