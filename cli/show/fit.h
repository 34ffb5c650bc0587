#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

/// Lines and tables that fit a terminal. A part without room is left out as a whole, so that a
/// number is never cut into another one. Pure.
namespace muster {

/// A piece of a line. Pieces with the largest rank are left out first, from right to left.
struct LineField {
  std::string text;
  uint32_t rank = 0;
};

/// Joins the fields, without those that have no room in `columns`; 0: all of them. If fields of
/// rank 0 alone are too long, the line is cut as by CutText().
std::string FitLine(std::vector<LineField> fields, size_t columns);

/// The words that have room in `columns` (0: all), with "..." if others were left out. The result
/// is one line without control characters.
std::string CutText(std::string_view text, size_t columns);

/// A column of a table. Columns with the largest rank are left out first, from right to left.
struct Column {
  std::string heading;
  uint32_t rank = 0;
};

/// The lines of a table. The heading comes first, and columns are two spaces apart. If columns have
/// no room, the heading ends with their number. If columns of rank 0 alone are too long, lines are
/// cut as by CutText(). Each of `rows` must be as long as `columns`.
std::vector<std::string> FitTable(const std::vector<Column>& columns,
                                  const std::vector<std::vector<std::string>>& rows, size_t width);

/// A table whose columns are as wide as their widest cell, two spaces apart. The first row is the
/// heading.
std::string FormatTable(const std::vector<std::vector<std::string>>& rows);

}  // namespace muster
