#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

/// Lines and tables that fit a terminal. What has no room is left out whole, so that no number is
/// ever cut into another one. Pure.
namespace muster {

/// A piece of a line; those of the largest rank are left out first, from the right.
struct LineField {
  std::string text;
  uint32_t rank = 0;
};

/// The fields one after the other, without those that have no room in `columns`; 0: all of them.
/// What is too long without any of a rank above 0 is cut as by CutText().
std::string FitLine(std::vector<LineField> fields, size_t columns);

/// The words that have room in `columns`, and "..." where others were left out. On one line, with
/// nothing in it that a terminal would obey. 0: all of them.
std::string CutText(std::string_view text, size_t columns);

/// A column of a table; those of the largest rank are left out first, from the right.
struct Column {
  std::string heading;
  uint32_t rank = 0;
};

/// The lines of a table, the heading first, columns two spaces apart; where columns have no room
/// the heading ends in how many there are. Lines that are too long with those of rank 0 alone are
/// cut as by CutText(). `rows` are as long as `columns`.
std::vector<std::string> FitTable(const std::vector<Column>& columns,
                                  const std::vector<std::vector<std::string>>& rows, size_t width);

/// Columns as wide as their widest cell, two spaces apart; the first row is the heading.
std::string FormatTable(const std::vector<std::vector<std::string>>& rows);

}  // namespace muster
