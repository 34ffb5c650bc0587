#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace muster {

/// The kind of the master's event about an epoch of which everything is committed.
inline constexpr char kEpochCommittedKind[] = "epoch-committed";

/// "epoch 3 of dataset 'train'": how the text of that event begins. `epoch` counts from 0. Pure.
inline std::string EpochWords(std::string_view dataset, uint32_t epoch) {
  return fmt::format("epoch {} of dataset '{}'", epoch + 1, dataset);
}

}  // namespace muster
