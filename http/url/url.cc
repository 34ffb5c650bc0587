#include "http/url/url.h"

#include <fmt/format.h>

#include "absl/strings/ascii.h"

namespace muster {
namespace {

int DigitOf(char c) {
  return absl::ascii_isdigit(static_cast<unsigned char>(c)) ? c - '0'
                                                            : absl::ascii_toupper(c) - 'A' + 10;
}

}  // namespace

std::string UrlEncode(std::string_view text, std::string_view kept) {
  constexpr std::string_view kUnreserved = "-._~";
  std::string encoded;
  for (const unsigned char c : text) {
    const bool plain = absl::ascii_isalnum(c) || kUnreserved.find(c) != std::string_view::npos ||
                       kept.find(c) != std::string_view::npos;
    encoded += plain ? std::string(1, static_cast<char>(c)) : fmt::format("%{:02X}", c);
  }
  return encoded;
}

std::string UrlDecode(std::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool coded = text[i] == '%' && i + 2 < text.size() &&
                       absl::ascii_isxdigit(static_cast<unsigned char>(text[i + 1])) &&
                       absl::ascii_isxdigit(static_cast<unsigned char>(text[i + 2]));
    decoded +=
        coded ? static_cast<char>(DigitOf(text[i + 1]) * 16 + DigitOf(text[i + 2])) : text[i];
    if (coded) i += 2;
  }
  return decoded;
}

}  // namespace muster
