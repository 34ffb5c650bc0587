#pragma once

#include <dlfcn.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

namespace muster::testing {

/// What a trainer does on its GPU, by CUDA's driver, as a trainer that knows nothing of Muster's
/// inside would do it. What does not work ends the process.
class TrainerGpu {
 public:
  TrainerGpu(const std::string& driver, size_t elements)
      : library_(::dlopen(driver.c_str(), RTLD_NOW)), bytes_(elements * sizeof(float)) {
    int device = 0;
    void* context = nullptr;
    Call<int(unsigned)>("cuInit", 0U);
    Call<int(int*, int)>("cuDeviceGet", &device, 0);
    Call<int(void**, int)>("cuDevicePrimaryCtxRetain", &context, device);
    Call<int(void*)>("cuCtxSetCurrent", context);
    Call<int(void**, unsigned)>("cuStreamCreate", &stream_, 1U);
    Call<int(uint64_t*, size_t)>("cuMemAlloc_v2", &gradient_, bytes_);
    Call<int(void**, size_t)>("cuMemAllocHost_v2", &pinned_, bytes_);
  }

  void* stream() const { return stream_; }
  /// At most `elements` values on the GPU, after what is in the stream. The next call overwrites
  /// them, as a backward pass does.
  const float* Upload(std::span<const float> values) {
    Call<int(uint64_t, const void*, size_t, void*)>("cuMemcpyHtoDAsync_v2", gradient_,
                                                    Pinned(values), values.size_bytes(), stream_);
    return reinterpret_cast<const float*>(gradient_);
  }
  /// A copy, which lives until the next call.
  std::span<const float> Download(const float* from, size_t elements) {
    downloaded_.resize(elements);
    Call<int(void*, uint64_t, size_t)>("cuMemcpyDtoH_v2", downloaded_.data(),
                                       reinterpret_cast<uint64_t>(from), elements * sizeof(float));
    return downloaded_;
  }

 private:
  template <typename Function, typename... Arguments>
  int Try(const char* name, Arguments... arguments) {
    void* const found = library_ == nullptr ? nullptr : ::dlsym(library_, name);
    return found == nullptr ? -1 : reinterpret_cast<Function*>(found)(arguments...);
  }
  template <typename Function, typename... Arguments>
  void Call(const char* name, Arguments... arguments) {
    const int result = Try<Function>(name, arguments...);
    if (result == 0) return;
    std::fprintf(stderr, "%s gave %d\n", name, result);
    std::exit(3);
  }
  /// The copy before has been made when the memory is written again.
  const void* Pinned(std::span<const float> values) {
    constexpr int kNotReady = 600;
    while (Try<int(void*)>("cuStreamQuery", stream_) == kNotReady) {
    }
    std::copy(values.begin(), values.end(), static_cast<float*>(pinned_));
    return pinned_;
  }

  void* const library_;
  const size_t bytes_;
  void* stream_ = nullptr;
  uint64_t gradient_ = 0;
  void* pinned_ = nullptr;
  std::vector<float> downloaded_;
};

}  // namespace muster::testing
