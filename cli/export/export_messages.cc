#include "cli/export/export_messages.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/escaping.h"
#include "base/status.h"
#include "kubernetes/model/json_access.h"

namespace muster::exporting {
namespace {

using kubernetes::ElementsAt;
using kubernetes::IntegerAt;
using kubernetes::TextAt;
using nlohmann::json;

/// True for the plain name of a file directly in the output folder.
bool IsPlainName(const std::string& name) {
  return !name.empty() && name.front() != '.' && name.find('/') == std::string::npos &&
         name.find('\0') == std::string::npos;
}

constexpr int64_t kNoNumber = -1;

}  // namespace

std::string TextOf(const ExportRequest& request) {
  return kubernetes::ToText(json{{"token", request.token},
                                 {"output", request.output},
                                 {"epoch", request.epoch},
                                 {"manifest", absl::Base64Escape(request.manifest)}});
}

std::string TextOf(const ExportReply& reply) {
  json files = json::array();
  for (const ExportedFile& file : reply.files) {
    files.push_back({{"name", file.name}, {"bytes", file.bytes}});
  }
  return kubernetes::ToText(json{{"code", static_cast<int>(reply.status.code())},
                                 {"message", std::string(Message(reply.status))},
                                 {"tables", reply.tables},
                                 {"files", std::move(files)}});
}

absl::StatusOr<ExportRequest> ParseRequest(std::string_view line) {
  MUSTER_ASSIGN_OR_RETURN(const json document, kubernetes::ParseJson(line));
  ExportRequest request{.token = TextAt(document, {"token"}),
                        .output = TextAt(document, {"output"}),
                        .epoch = TextAt(document, {"epoch"})};
  if (!absl::Base64Unescape(TextAt(document, {"manifest"}), &request.manifest)) {
    return absl::InvalidArgumentError("the request for an export has a manifest that is no base64");
  }
  return request;
}

absl::StatusOr<ExportReply> ParseReply(std::string_view line) {
  const absl::StatusOr<json> document = kubernetes::ParseJson(line);
  const int64_t code = document.ok() ? IntegerAt(*document, {"code"}, kNoNumber) : kNoNumber;
  const int64_t tables = document.ok() ? IntegerAt(*document, {"tables"}, kNoNumber) : kNoNumber;
  if (code < 0 || tables < 0) {
    return absl::DataLossError(
        "the pod of the export gave an answer that is none; has its image another version of "
        "muster?");
  }
  ExportReply reply{
      .status = absl::Status(static_cast<absl::StatusCode>(code), TextAt(*document, {"message"})),
      .tables = static_cast<uint64_t>(tables)};
  for (const json& file : ElementsAt(*document, {"files"})) {
    const std::string name = TextAt(file, {"name"});
    const int64_t bytes = IntegerAt(file, {"bytes"}, kNoNumber);
    if (!IsPlainName(name) || bytes < 0) {
      return absl::DataLossError(
          fmt::format("the pod of the export sends a file '{}' of {} bytes", name, bytes));
    }
    reply.files.push_back({name, static_cast<uint64_t>(bytes)});
  }
  return reply;
}

}  // namespace muster::exporting
