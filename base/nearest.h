#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

/// The fewest insertions, deletions, replacements and swaps of neighbours that turn one into the
/// other. Source: the optimal string alignment distance (Damerau, CACM 7/3, 1964).
size_t EditDistance(std::string_view a, std::string_view b);

/// The candidate that was probably meant by `name`. Empty if none is near. Case, '_' and '-' do not
/// count.
std::string Nearest(std::string_view name, const std::vector<std::string>& candidates);

}  // namespace muster
