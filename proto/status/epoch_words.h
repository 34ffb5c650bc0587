#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace muster {

/// The kind of the master's event about epochs of which everything is committed.
inline constexpr char kEpochCommittedKind[] = "epoch-committed";

/// Epochs `first` to `last` of a dataset, counted from 0.
struct EpochRange {
  std::string dataset;
  uint32_t first = 0;
  uint32_t last = 0;
  friend bool operator==(const EpochRange&, const EpochRange&) = default;
};

/// "epoch 3 of dataset 'train'", "epochs 3 to 9 of dataset 'train'": how the text of that event
/// begins. Pure.
std::string EpochWords(const EpochRange& epochs);
/// What EpochWords() has written at the beginning of `text`; none: it begins in another way. Pure.
std::optional<EpochRange> EpochsNamedIn(std::string_view text);

}  // namespace muster
