#pragma once

#include <cstddef>
#include <cstdint>

/// The interface of a shared library that adds the gradients of a synchronous group in place of
/// Muster's own ring (CollectiveOptions::Backend::kPlugin of muster/group.h). Its binary
/// interface is C's, so a plugin may be built with any compiler and any version of C++.
/// examples/gloo_plugin is a whole one.

extern "C" {

/// Where a function that fails puts the reason: a text of at most `capacity` bytes, with a zero at
/// its end. Muster shows it to the user.
struct muster_plugin_error {
  char* text;
  size_t capacity;
};

/// How the elements of a bucket are added.
enum muster_plugin_type {
  MUSTER_PLUGIN_FLOAT32 = 0,
  /// The upper half of a float32. Rounded to nearest, ties to even.
  MUSTER_PLUGIN_BFLOAT16 = 1,
  /// Wraps around.
  MUSTER_PLUGIN_INT64 = 2,
};

/// The functions of a plugin. Those that return int return 0 if they did it, and otherwise set the
/// error. Muster calls them from one thread for each communicator, apart from `abort`.
struct muster_collective_plugin_table {
  /// What messages call it; all members must have the same. 1 to 64 bytes. Not "NCCL".
  const char* name;
  /// Makes the id of a new communicator, at most `capacity` (1024) bytes. The member of rank 0
  /// calls it, and Muster tells the id to all members.
  int (*new_id)(uint8_t* id, size_t capacity, size_t* bytes, struct muster_plugin_error* error);
  /// Connects the members of a group, whose ranks are 0 to members - 1. It may wait for them, but
  /// not for ever: a member may have died. `aborted(context)` is true when waiting is of no use
  /// any more.
  int (*connect)(const uint8_t* id, size_t bytes, uint32_t rank, uint32_t members,
                 int (*aborted)(const void* context), const void* context, void** communicator,
                 struct muster_plugin_error* error);
  /// Replaces `count` elements by their sums over all members. All members must get the same bits.
  /// They call it for the same buckets in the same order. It may wait for the others.
  int (*sum)(void* communicator, enum muster_plugin_type type, void* data, size_t count,
             struct muster_plugin_error* error);
  /// Called once when the attempt of the group is over, by another thread, perhaps during `sum`.
  /// `sum` should return soon. If it does not, Muster goes on without its thread.
  void (*abort)(void* communicator);
  /// Ends a communicator. Must not wait for other members: they may be dead.
  void (*destroy)(void* communicator);
};

/// The one function that a plugin exports; the result stays valid. Returns NULL if it does not know
/// the version of this interface.
#define MUSTER_COLLECTIVE_PLUGIN_VERSION 1u
#define MUSTER_COLLECTIVE_PLUGIN_FUNCTION "muster_collective_plugin"
typedef const struct muster_collective_plugin_table* (*muster_collective_plugin_function)(
    uint32_t version);

}  // extern "C"
