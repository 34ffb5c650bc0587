#pragma once

#include <cstdint>
#include <string>

#include "proto/messages/slot_file.h"

namespace muster::sdk {

/// Keeps the slot file (proto/messages/slot_file.h) of this process, in which every loop has a
/// place of its own. Does nothing if `path` is empty, or if the file cannot be mapped (a line on
/// stderr says so). Thread-safe.
class SlotWriter {
 public:
  SlotWriter(const std::string& path, uint64_t incarnation);
  ~SlotWriter();
  SlotWriter(const SlotWriter&) = delete;
  SlotWriter& operator=(const SlotWriter&) = delete;

  void Enter(LeaseToken token);
  void Minibatch(LeaseToken token);
  void Leave(LeaseToken token);
  void End();

 private:
  SlotFile* slot_ = nullptr;
};

}  // namespace muster::sdk
