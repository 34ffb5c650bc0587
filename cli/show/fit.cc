#include "cli/show/fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace muster {
namespace {

constexpr size_t kGap = 2;

/// The index of the last item with the largest rank. npos if no rank is above 0.
template <typename Ranked>
size_t PlaceOfLeast(const std::vector<Ranked>& all) {
  size_t place = std::string::npos;
  uint32_t rank = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].rank == 0 || all[i].rank < rank) continue;
    rank = all[i].rank;
    place = i;
  }
  return place;
}

std::vector<std::string> LinesOf(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  for (const std::vector<std::string>& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::vector<std::string> lines;
  for (const std::vector<std::string>& row : rows) {
    std::string& line = lines.emplace_back();
    for (size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      if (i + 1 < row.size()) line += std::string(widths[i] - row[i].size() + kGap, ' ');
    }
  }
  return lines;
}

bool Fits(const std::vector<std::string>& lines, size_t width) {
  return std::ranges::all_of(lines, [&](const std::string& line) { return line.size() <= width; });
}

}  // namespace

std::string FitLine(std::vector<LineField> fields, size_t columns) {
  const auto joined = [&fields] {
    std::string line;
    for (const LineField& field : fields) line += field.text;
    return line;
  };
  std::string line = joined();
  while (columns > 0 && line.size() > columns) {
    const size_t least = PlaceOfLeast(fields);
    if (least == std::string::npos) break;
    fields.erase(fields.begin() + static_cast<std::ptrdiff_t>(least));
    line = joined();
  }
  return CutText(line, columns);
}

std::string CutText(std::string_view text, size_t columns) {
  constexpr std::string_view kMore = "...";
  std::string line = Printable(ValidUtf8(text));
  if (columns == 0 || line.size() <= columns) return line;
  if (columns <= kMore.size()) return std::string(kMore.substr(0, columns));
  // Cuts at the end of a word. If a single word is too long, the cut is visible.
  const size_t room = columns - kMore.size();
  const size_t blank = line.rfind(' ', room - 1);
  const bool word = blank != std::string::npos && line.find_first_not_of(' ') < blank;
  return ValidUtf8(line, word ? blank + 1 : room).append(kMore);
}

std::vector<std::string> FitTable(const std::vector<Column>& columns,
                                  const std::vector<std::vector<std::string>>& rows, size_t width) {
  std::vector<Column> kept = columns;
  std::vector<std::vector<std::string>> cells;
  std::vector<std::string>& heading = cells.emplace_back();
  for (const Column& column : columns) heading.push_back(column.heading);
  cells.insert(cells.end(), rows.begin(), rows.end());
  size_t missing = 0;
  while (true) {
    std::vector<std::string> lines = LinesOf(cells);
    if (missing > 0) lines[0] += fmt::format("{}+{} columns", std::string(kGap, ' '), missing);
    if (width == 0 || Fits(lines, width)) return lines;
    const size_t least = PlaceOfLeast(kept);
    if (least == std::string::npos) {
      for (std::string& line : lines) line = CutText(line, width);
      return lines;
    }
    kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(least));
    for (std::vector<std::string>& row : cells) {
      row.erase(row.begin() + static_cast<std::ptrdiff_t>(least));
    }
    ++missing;
  }
}

std::string FormatTable(const std::vector<std::vector<std::string>>& rows) {
  std::string text;
  for (const std::string& line : LinesOf(rows)) text += line + "\n";
  return text;
}

}  // namespace muster
