#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

/// One mounted hierarchy of control groups.
struct CgroupMount {
  bool v2 = false;
  std::vector<std::string>
      options;       // of the super block; with version 1, controllers are among them
  std::string root;  // the mounted part of the hierarchy: "/" unless in a container
  std::string point;
};

/// Parses the hierarchies in the text of /proc/self/mountinfo. Other lines are skipped.
std::vector<CgroupMount> ParseCgroupMounts(std::string_view mountinfo);

/// Parses the text of /proc/self/cgroup. The result is the group of the process for each controller
/// of version 1 ("memory"); "" stands for version 2.
std::map<std::string, std::string> ParseOwnCgroups(std::string_view cgroup);

/// The folder of `group` below `mount`, which may show only a part of the hierarchy.
std::string CgroupFolder(const CgroupMount& mount, const std::string& group);

}  // namespace muster
