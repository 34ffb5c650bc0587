#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>

namespace muster::sdk {

class RowCheck;

/// What an answer to a pull brought. `values`: the rows of the parts with kOk, one after the other,
/// without groups that are unchanged.
struct ReceivedRows {
  ReceivedRows() = default;
  ReceivedRows(std::shared_ptr<const float[]> rows)  // NOLINT: conversion is the point
      : values(rows.get()), block(std::move(rows)) {}
  const float* values = nullptr;
  /// Keeps them alive; null: the server will overwrite their memory.
  std::shared_ptr<const float[]> block;
  /// Of the groups that have one in the request.
  std::span<const uint64_t> versions;
  /// Checks the rows; the answer counts only if it finds no damage. Null: they have been checked.
  /// Rows of dense tensors are always checked before, because a tensor says which version it has as
  /// soon as its rows are placed.
  RowCheck* check = nullptr;
};

}  // namespace muster::sdk
