#include "base/nearest.h"

#include <algorithm>

namespace muster {
namespace {

std::string Plain(std::string_view name) {
  std::string plain;
  for (const char c : name) {
    if (c != '_' && c != '-')
      plain += (c >= 'A' && c <= 'Z') ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return plain;
}

}  // namespace

size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1);
  std::vector<size_t> last(b.size() + 1);
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

std::string Nearest(std::string_view name, const std::vector<std::string>& candidates) {
  constexpr size_t kNameBytesMax = 64;  // longer names are no typing errors
  if (name.size() > kNameBytesMax) return "";
  const std::string plain = Plain(name);
  std::string best;
  size_t best_distance = std::max<size_t>(2, plain.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const std::string other = Plain(candidate);
    const size_t distance = EditDistance(plain, other);
    // A few changed letters turn a short name into any other short name, so such names do not count
    // as near.
    if (distance < best_distance && distance < std::max(plain.size(), other.size())) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

}  // namespace muster
