#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <tuple>

#include "collectives/backends/gpu_loops.h"

namespace muster::collectives::testing {

/// What a launch does on the fake GPU, as a task of its stream.
using FakeLaunch = std::function<void()>;
/// Makes a launch of a kernel's parameters, for so many threads.
using FakeKernel = std::function<FakeLaunch(void** parameters, uint64_t threads)>;

/// The first parameter of a kernel is the number of elements; the others go to `loop`, after the
/// element.
template <typename... Parameters>
FakeKernel EachElement(void (*loop)(gpu::Word, Parameters...)) {
  return [loop](void** parameters, uint64_t threads) -> FakeLaunch {
    uint64_t size = 0;
    std::memcpy(&size, parameters[0], sizeof(size));
    // The driver copies the parameters before the launch returns.
    std::tuple<Parameters...> copied;
    size_t next = 1;
    std::apply(
        [&](Parameters&... each) { ((std::memcpy(&each, parameters[next++], sizeof(each))), ...); },
        copied);
    return [=] {
      for (uint64_t i = 0; i < std::min(size, threads); ++i) {
        std::apply([&](const Parameters&... each) { loop(i, each...); }, copied);
      }
    };
  };
}

template <typename T>
FakeKernel DigestKernel() {
  return [](void** parameters, uint64_t) -> FakeLaunch {
    uint64_t size = 0;
    const T* from = nullptr;
    gpu::Word* sum = nullptr;
    std::memcpy(&size, parameters[0], sizeof(size));
    std::memcpy(&from, parameters[1], sizeof(from));
    std::memcpy(&sum, parameters[2], sizeof(sum));
    return [=] {
      for (uint64_t i = 0; i < size; ++i) *sum += gpu::DigestOf(i, from[i]);
    };
  };
}

/// The kernels of gpu_kernels.py, by name.
inline const std::map<std::string, FakeKernel>& FakeKernels() {
  static const std::map<std::string, FakeKernel> kernels = {
      {"add_fixed", EachElement(+[](gpu::Word i, const float* from, gpu::Fixed* sum, double scale,
                                    gpu::Bits limit, gpu::Bits first, gpu::Word* bad) {
         gpu::AddFixed(i, from, sum, scale, limit, first != 0, bad);
       })},
      {"add_float",
       EachElement(+[](gpu::Word i, const float* from, float* sum, gpu::Bits first,
                       gpu::Word* bad) { gpu::AddFloat(i, from, sum, first != 0, bad); })},
      {"to_bfloat16", EachElement(&gpu::ToBfloat16)},
      {"from_fixed", EachElement(&gpu::FromFixed)},
      {"from_bfloat16", EachElement(&gpu::FromBfloat16)},
      {"from_float", EachElement(&gpu::FromFloat)},
      {"digest_16", DigestKernel<gpu::Half>()},
      {"digest_32", DigestKernel<gpu::Bits>()},
      {"digest_64", DigestKernel<gpu::Word>()},
  };
  return kernels;
}

}  // namespace muster::collectives::testing
