#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace muster::scaler {

struct HistoryFile {
  uint64_t number = 0;
  std::string path;
  uint64_t bytes = 0;
};

/// The files of a history, oldest first. The list is empty if there is no such folder.
std::vector<HistoryFile> ListHistory(const std::string& folder);
std::string HistoryPath(const std::string& folder, uint64_t number);

}  // namespace muster::scaler
