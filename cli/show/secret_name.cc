#include "cli/show/secret_name.h"

#include <algorithm>
#include <array>
#include <string>

namespace muster {

bool LooksSecret(std::string_view name) {
  constexpr std::array<std::string_view, 4> kWords = {"KEY", "TOKEN", "SECRET", "PASSWORD"};
  std::string capitals(name);
  for (char& c : capitals) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return std::ranges::any_of(
      kWords, [&](std::string_view word) { return capitals.find(word) != std::string::npos; });
}

}  // namespace muster
