#include "proto/status/epoch_words.h"

#include <fmt/format.h>

#include <charconv>

namespace muster {
namespace {

bool Take(std::string_view words, std::string_view* text) {
  if (!text->starts_with(words)) return false;
  text->remove_prefix(words.size());
  return true;
}

/// An epoch as people count them, from 1.
bool Take(uint32_t* epoch, std::string_view* text) {
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (error != std::errc() || number == 0) return false;
  text->remove_prefix(static_cast<size_t>(end - text->data()));
  *epoch = number - 1;
  return true;
}

}  // namespace

std::string EpochWords(const EpochRange& epochs) {
  const uint64_t first = uint64_t{epochs.first} + 1, last = uint64_t{epochs.last} + 1;
  return first == last
             ? fmt::format("epoch {} of dataset '{}'", first, epochs.dataset)
             : fmt::format("epochs {} to {} of dataset '{}'", first, last, epochs.dataset);
}

std::optional<EpochRange> EpochsNamedIn(std::string_view text) {
  EpochRange epochs;
  if (Take("epochs ", &text)) {
    if (!Take(&epochs.first, &text) || !Take(" to ", &text) || !Take(&epochs.last, &text)) {
      return std::nullopt;
    }
  } else {
    if (!Take("epoch ", &text) || !Take(&epochs.first, &text)) return std::nullopt;
    epochs.last = epochs.first;
  }
  if (epochs.first > epochs.last || !Take(" of dataset '", &text)) return std::nullopt;
  const size_t end = text.find('\'');
  if (end == std::string_view::npos) return std::nullopt;
  epochs.dataset = text.substr(0, end);
  return epochs;
}

}  // namespace muster
