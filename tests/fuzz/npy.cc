#include "proto/exported/npy.h"

#include "base/check.h"
#include "tests/fuzz/targets.h"

namespace muster::testing {

void FuzzNpy(std::string_view input) {
  const absl::StatusOr<NpyArray> array = DecodeNpy(input);
  if (!array.ok()) return;
  unsigned __int128 bytes = array->header.dtype == kNpyFloat32 ? 4 : 8;
  for (const uint64_t extent : array->header.shape) {
    bytes *= extent;
    MUSTER_CHECK(bytes < uint64_t{1} << 62 || array->data.empty());
    if (extent == 0) break;
  }
  MUSTER_CHECK(bytes == array->data.size());
  MUSTER_CHECK(array->data.empty() ||
               array->data.data() + array->data.size() == input.data() + input.size());
}

}  // namespace muster::testing
