#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/digest/sha256.h"
#include "base/file.h"
#include "proto/exported/npy.h"
#include "proto/exported/sha256.h"

namespace muster::testing {

template <typename T>
std::string NpyFile(const NpyHeader& header, const std::vector<T>& data) {
  return EncodeNpyHeader(header) +
         std::string(reinterpret_cast<const char*>(data.data()), data.size() * sizeof(T));
}

/// Files as `muster export` writes them, with their sums. `files`: name -> contents.
inline absl::Status WriteSampleExport(const std::string& directory,
                                      const std::map<std::string, std::string>& files) {
  Sha256Sums sums;
  absl::Status status = MakeDirectories(directory);
  for (const auto& [name, contents] : files) {
    if (status.ok()) status = WriteFileAtomically(directory + "/" + name, contents);
    sums[name] = Sha256Hex(contents);
  }
  if (status.ok()) status = WriteFileAtomically(directory + "/SHA256SUMS", FormatSums(sums));
  return status;
}

/// A sparse table "t" of two rows of two columns, and a dense tensor "w" of shape [3].
inline std::map<std::string, std::string> SampleExport() {
  return {{"t.keys.npy", NpyFile<uint64_t>({kNpyUint64, {2}}, {4, 9})},
          {"t.values.npy", NpyFile<float>({kNpyFloat32, {2, 2}}, {1, 2, 3, 4})},
          {"w.npy", NpyFile<float>({kNpyFloat32, {3}}, {5, 6, 7})}};
}

}  // namespace muster::testing
