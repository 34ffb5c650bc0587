#include "cli/show/shell_word.h"

namespace muster {

std::string ShellQuoted(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

std::string ShellWord(std::string_view text) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:@";
  const bool plain = !text.empty() && text.find_first_not_of(kPlain) == std::string_view::npos;
  return plain ? std::string(text) : ShellQuoted(text);
}

}  // namespace muster
