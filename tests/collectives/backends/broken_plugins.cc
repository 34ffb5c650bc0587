// Libraries that are no plugins, each for another reason: MUSTER_BROKEN_PLUGIN says which one.
#include "muster/collective_plugin.h"

namespace {

int NewId(uint8_t*, size_t capacity, size_t* bytes, muster_plugin_error*) {
  *bytes = capacity + 1;
  return 0;
}
int Connect(const uint8_t*, size_t, uint32_t, uint32_t, int (*)(const void*), const void*, void**,
            muster_plugin_error* error) {
  error->text[0] = 'n';
  error->text[1] = 'o';
  return 1;
}
int Sum(void*, muster_plugin_type, void*, size_t, muster_plugin_error*) {
  return 1;
}
void Nothing(void*) {}

constexpr muster_collective_plugin_table kWhole = {"broken", &NewId,   &Connect,
                                                   &Sum,     &Nothing, &Nothing};
constexpr muster_collective_plugin_table kWithoutSum = {"broken", &NewId,   &Connect,
                                                        nullptr,  &Nothing, &Nothing};
constexpr muster_collective_plugin_table kNamedNccl = {"NCCL", &NewId,   &Connect,
                                                       &Sum,   &Nothing, &Nothing};

}  // namespace

extern "C" __attribute__((visibility("default"))) const muster_collective_plugin_table*
muster_collective_plugin(uint32_t version) {
  if (version != MUSTER_COLLECTIVE_PLUGIN_VERSION) return nullptr;
  if (MUSTER_BROKEN_PLUGIN == 1) return nullptr;
  return MUSTER_BROKEN_PLUGIN == 2   ? &kWithoutSum
         : MUSTER_BROKEN_PLUGIN == 3 ? &kNamedNccl
                                     : &kWhole;
}
