#include "base/text.h"

#include <cstdint>

namespace muster {
namespace {

/// Length in bytes of the character at the start of `text`, or 0 if it is not valid. Source:
/// Unicode 15, table 3-7.
size_t CharacterBytes(std::string_view text) {
  const auto byte = [text](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(0);
  if (lead < 0x80) return 1;
  const size_t size = lead >= 0xc2 && lead <= 0xdf   ? 2
                      : (lead & 0xf0) == 0xe0        ? 3
                      : lead >= 0xf0 && lead <= 0xf4 ? 4
                                                     : 0;
  if (size == 0 || text.size() < size) return 0;
  for (size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  const bool overlong = (lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xf0 && byte(1) < 0x90);
  const bool outside = (lead == 0xed && byte(1) > 0x9f) || (lead == 0xf4 && byte(1) > 0x8f);
  return overlong || outside ? 0 : size;
}

}  // namespace

std::string ValidUtf8(std::string_view text, size_t bytes_max) {
  std::string valid;
  while (!text.empty()) {
    const size_t size = CharacterBytes(text);
    const std::string_view next = size == 0 ? std::string_view("?") : text.substr(0, size);
    if (valid.size() + next.size() > bytes_max) break;
    valid += next;
    text.remove_prefix(size == 0 ? 1 : size);
  }
  return valid;
}

bool IsValidUtf8(std::string_view text) {
  while (!text.empty()) {
    const size_t size = CharacterBytes(text);
    if (size == 0) return false;
    text.remove_prefix(size);
  }
  return true;
}

std::string Printable(std::string_view text) {
  std::string printable(text);
  for (char& c : printable) {
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') c = ' ';
  }
  return printable;
}

std::string Excerpt(std::string_view text, size_t bytes_max) {
  const std::string first = Printable(ValidUtf8(text, bytes_max));
  return text.size() > bytes_max ? first + "..." : first;
}

}  // namespace muster
