#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "proto/admin.pb.h"

/// What the verbs print for people. Pure.
namespace muster {

std::string StatusText(const v1::JobStatus& status);
std::string NodesText(const v1::JobStatus& status);
std::string ShardsText(const v1::ListShardsResponse& response);
std::string PartitionsText(const v1::ListPartitionsResponse& response);
std::string EventText(const v1::Event& event);

/// Columns as wide as their widest cell, two spaces apart; the first row is the heading.
std::string FormatTable(const std::vector<std::vector<std::string>>& rows);

}  // namespace muster
