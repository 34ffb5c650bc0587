#pragma once

namespace muster::testing {

/// Whether the address or the thread sanitizer is compiled in: everything is slower by a factor of
/// ten or more, and memory and descriptors cannot be limited, because the sanitizer needs them
/// itself.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace muster::testing
