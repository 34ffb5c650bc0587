#pragma once

#include <string>

#include "proto/messages/shard_work.h"

namespace muster::sdk {

/// The path on this machine of a file that the master calls `path`. `rule` is "THERE=HERE", or
/// empty. Only paths below the folder THERE change. Pure.
inline std::string PathHere(const std::string& rule, const std::string& path) {
  const size_t equals = rule.find('=');
  if (equals == std::string::npos || equals == 0) return path;
  const std::string there = rule.substr(0, equals);
  const bool below = path.starts_with(there) &&
                     (there.back() == '/' || path.substr(there.size()).starts_with('/'));
  return below ? rule.substr(equals + 1) + path.substr(there.size()) : path;
}

/// The same for all files of a shard.
inline void MoveHere(const std::string& rule, ShardWork* work) {
  for (SourceFile& file : work->files) file.path = PathHere(rule, file.path);
}

}  // namespace muster::sdk
