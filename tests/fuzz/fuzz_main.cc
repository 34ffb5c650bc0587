// What libFuzzer calls: MUSTER_FUZZ_TARGET names the function of targets.h.
#include <google/protobuf/stubs/logging.h>

#include <cstddef>
#include <cstdint>

#include "tests/fuzz/targets.h"

#define MUSTER_CALLED_BY_FUZZER extern "C" __attribute__((visibility("default")))

MUSTER_CALLED_BY_FUZZER int LLVMFuzzerInitialize(int* /*argc*/, char*** /*argv*/) {
  google::protobuf::SetLogHandler(nullptr);  // a line for every wrong string
  return 0;
}

MUSTER_CALLED_BY_FUZZER int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  muster::testing::MUSTER_FUZZ_TARGET({reinterpret_cast<const char*>(data), size});
  return 0;
}
