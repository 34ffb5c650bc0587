#include "examples/text/arguments.h"

#include <charconv>
#include <sstream>
#include <utility>

namespace text {
namespace {

/// The whole of `value` as a number within the bounds.
template <typename T>
std::optional<T> Parsed(const std::string& value, T low, T high) {
  T number{};
  const char* const end = value.data() + value.size();
  const auto [stop, error] = std::from_chars(value.data(), end, number);
  const bool good = error == std::errc() && stop == end && number >= low && number <= high;
  return good ? std::optional(number) : std::nullopt;
}

template <typename T>
std::string OutOfBounds(const std::string& name, const std::string& value, T low, T high) {
  std::ostringstream text;
  text << "--" << name << " is '" << value << "', not a number from " << low << " to " << high;
  return text.str();
}

}  // namespace

Arguments::Arguments(std::span<const char* const> words) {
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words[i];
    if (word == "--help" || word == "-h") {
      help_ = true;
    } else if (!word.starts_with("--")) {
      Wrong("'" + std::string(word) + "' is not the name of an argument");
    } else if (i + 1 == words.size()) {
      Wrong(std::string(word) + " has no value");
    } else if (!values_.emplace(word.substr(2), words[++i]).second) {
      Wrong(std::string(word) + " is given twice");
    }
  }
}

void Arguments::Wrong(std::string error) {
  if (!error_) error_ = std::move(error);
}

std::optional<std::string> Arguments::Take(const std::string& name) {
  auto taken = values_.extract(name);
  if (taken.empty()) return std::nullopt;
  return std::move(taken.mapped());
}

std::string Arguments::Text(const std::string& name, std::string otherwise) {
  return Take(name).value_or(std::move(otherwise));
}

uint64_t Arguments::Number(const std::string& name, uint64_t otherwise, uint64_t low,
                           uint64_t high) {
  const std::optional<std::string> value = Take(name);
  if (!value) return otherwise;
  const std::optional<uint64_t> number = Parsed(*value, low, high);
  if (!number) Wrong(OutOfBounds(name, *value, low, high));
  return number.value_or(otherwise);
}

float Arguments::Real(const std::string& name, float otherwise, float low, float high) {
  const std::optional<std::string> value = Take(name);
  if (!value) return otherwise;
  const std::optional<float> number = Parsed(*value, low, high);
  if (!number) Wrong(OutOfBounds(name, *value, low, high));
  return number.value_or(otherwise);
}

std::optional<std::string> Arguments::Error() const {
  if (error_ || values_.empty()) return error_;
  return "unknown argument --" + values_.begin()->first;
}

}  // namespace text
