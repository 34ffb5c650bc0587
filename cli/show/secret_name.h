#pragma once

#include <string_view>

namespace muster {

/// True if the value of a variable of this name is probably a secret, so that no output shows it:
/// the name contains KEY, TOKEN, SECRET or PASSWORD, in capitals or not.
bool LooksSecret(std::string_view name);

/// The text in place of such a value.
inline constexpr std::string_view kHiddenValue = "(hidden)";

}  // namespace muster
