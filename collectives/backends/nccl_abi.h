#pragma once

#include <cstddef>

/// The part of NCCL's binary interface that Muster uses, as NCCL 2.14 and later have it
/// (https://docs.nvidia.com/deeplearning/nccl/user-guide). The library is loaded at run time, so
/// neither its headers nor CUDA's are needed to build.
namespace muster::collectives::nccl {

struct UniqueId {
  char internal[128];
};
struct CommOpaque;
using Comm = CommOpaque*;
using Stream = void*;  // a CUstream

enum Result : int { kSuccess = 0, kInvalidArgument = 4, kInvalidUsage = 5, kInProgress = 7 };
enum DataType : int { kInt64 = 4, kFloat32 = 7, kBfloat16 = 9 };
enum Operation : int { kSum = 0 };

/// ncclConfig_t as version 2.14 defines it. NCCL reads `size` bytes, and fills in the rest by
/// `version`.
struct Config {
  size_t size = sizeof(Config);
  unsigned int magic = 0xcafebeef;
  unsigned int version = 21'400;
  int blocking = 0;
};
static_assert(sizeof(Config) == 24);

inline constexpr int kVersionMin = 21'400;

/// The functions, by their names without the prefix "nccl".
struct Functions {
  Result (*GetVersion)(int* version) = nullptr;
  Result (*GetUniqueId)(UniqueId* id) = nullptr;
  Result (*CommInitRankConfig)(Comm* comm, int members, UniqueId id, int rank,
                               Config* config) = nullptr;
  Result (*CommGetAsyncError)(Comm comm, Result* error) = nullptr;
  Result (*AllReduce)(const void* from, void* to, size_t count, DataType type, Operation operation,
                      Comm comm, Stream stream) = nullptr;
  Result (*CommAbort)(Comm comm) = nullptr;
  const char* (*GetErrorString)(Result result) = nullptr;
  /// May be absent (before 2.13).
  const char* (*GetLastError)(Comm comm) = nullptr;
};

}  // namespace muster::collectives::nccl
