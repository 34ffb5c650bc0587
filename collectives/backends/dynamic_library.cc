#include "collectives/backends/dynamic_library.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>

#if defined(__has_feature)
#define MUSTER_HAS_FEATURE(x) __has_feature(x)
#else
#define MUSTER_HAS_FEATURE(x) 0
#endif

namespace muster::collectives {
namespace {

/// A sanitizer has to see the allocations of the library, too.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || \
    MUSTER_HAS_FEATURE(address_sanitizer) || MUSTER_HAS_FEATURE(thread_sanitizer)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

std::string LinkerError() {
  const char* const text = ::dlerror();
  return text == nullptr ? "no reason given" : text;
}

}  // namespace

absl::StatusOr<DynamicLibrary> DynamicLibrary::Load(const std::string& name, bool isolated) {
  int flags = RTLD_NOW | RTLD_LOCAL;
  if (isolated && !kSanitized) flags |= RTLD_DEEPBIND;
  void* const handle = ::dlopen(name.c_str(), flags);
  if (handle == nullptr) {
    return absl::NotFoundError(fmt::format("cannot load {}: {}", name, LinkerError()));
  }
  const link_map* map = nullptr;
  const bool known = ::dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr;
  return DynamicLibrary(handle, known && map->l_name[0] != '\0' ? map->l_name : name);
}

absl::StatusOr<void*> DynamicLibrary::FindAddress(const char* symbol) const {
  void* const found = ::dlsym(handle_, symbol);
  if (found != nullptr) return found;
  return absl::UnimplementedError(fmt::format("{} has no {}; is it too old?", path_, symbol));
}

}  // namespace muster::collectives
