#include "host/processes/cgroup_mounts.h"

#include <algorithm>

namespace muster {
namespace {

std::vector<std::string> Split(std::string_view text, char by) {
  std::vector<std::string> parts;
  while (true) {
    const size_t end = std::min(text.find(by), text.size());
    parts.emplace_back(text.substr(0, end));
    if (end == text.size()) return parts;
    text.remove_prefix(end + 1);
  }
}

/// The kernel writes blanks, tabs, line breaks and backslashes in paths as \ooo.
std::string Unescaped(std::string_view text) {
  const auto digit = [](char c) { return c >= '0' && c <= '7'; };
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool escape = text[i] == '\\' && i + 3 < text.size() && digit(text[i + 1]) &&
                        digit(text[i + 2]) && digit(text[i + 3]);
    if (!escape) {
      plain += text[i];
      continue;
    }
    plain +=
        static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
    i += 3;
  }
  return plain;
}

}  // namespace

std::vector<CgroupMount> ParseCgroupMounts(std::string_view mountinfo) {
  std::vector<CgroupMount> mounts;
  for (const std::string& line : Split(mountinfo, '\n')) {
    // id parent device root point options [tag...] - type source super-options
    const std::vector<std::string> words = Split(line, ' ');
    const auto dash = std::find(words.begin(), words.end(), "-");
    if (words.end() - dash < 4 || dash - words.begin() < 6) continue;
    if (dash[1] != "cgroup" && dash[1] != "cgroup2") continue;
    mounts.push_back({.v2 = dash[1] == "cgroup2",
                      .options = Split(dash[3], ','),
                      .root = Unescaped(words[3]),
                      .point = Unescaped(words[4])});
  }
  return mounts;
}

std::map<std::string, std::string> ParseOwnCgroups(std::string_view cgroup) {
  std::map<std::string, std::string> groups;
  for (const std::string& line : Split(cgroup, '\n')) {
    // number:controllers:path
    const size_t first = line.find(':');
    const size_t second = line.find(':', first == std::string::npos ? first : first + 1);
    if (second == std::string::npos) continue;
    const std::string path = line.substr(second + 1);
    for (const std::string& controller : Split(line.substr(first + 1, second - first - 1), ',')) {
      groups[controller] = path;
    }
  }
  return groups;
}

std::string CgroupFolder(const CgroupMount& mount, const std::string& group) {
  std::string below = group;
  if (mount.root != "/" && below.starts_with(mount.root)) below = below.substr(mount.root.size());
  // A namespace shows a group outside of the mounted part as "/..".
  if (below.starts_with("/..") || below == "/") below.clear();
  return mount.point + below;
}

}  // namespace muster
