#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace muster::check_internal {

void Fail(const char* file, int line, const char* condition, std::string_view message) {
  std::fprintf(stderr, "%s:%d: internal error, please report it: CHECK(%s) failed%s%.*s\n", file,
               line, condition, message.empty() ? "" : ": ", static_cast<int>(message.size()),
               message.data());
  std::abort();
}

}  // namespace muster::check_internal
