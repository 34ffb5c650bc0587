#include "cli/metrics/event_file.h"

#include <optional>
#include <utility>

#include "base/checksum/crc32c.h"
#include "proto/fields/decode.h"
#include "proto/fields/encode.h"

namespace muster::metrics {
namespace {

struct SummaryValue {
  static constexpr const char* kName = "Summary.Value";
  std::string tag;
  std::optional<float> simple_value;  // absent if the value is of another kind
  static void Fields(auto& f, auto& v) {
    f(1, "tag", v.tag);
    f(2, "simple_value", v.simple_value);
  }
};

struct Summary {
  static constexpr const char* kName = "Summary";
  std::vector<SummaryValue> value;
  static void Fields(auto& f, auto& s) { f(1, "value", s.value); }
};

struct SourceMetadata {
  static constexpr const char* kName = "SourceMetadata";
  std::string writer;
  static void Fields(auto& f, auto& m) { f(1, "writer", m.writer); }
};

struct Event {
  static constexpr const char* kName = "Event";
  double wall_time = 0;
  uint64_t step = 0;
  std::string file_version;
  std::optional<Summary> summary;
  std::optional<SourceMetadata> source_metadata;
  static void Fields(auto& f, auto& e) {
    f(1, "wall_time", e.wall_time);
    f(2, "step", e.step);
    f(3, "file_version", e.file_version);
    f(5, "summary", e.summary);
    f(10, "source_metadata", e.source_metadata);
  }
};

constexpr char kFileVersion[] = "brain.Event:2";
constexpr size_t kHeaderBytes = 12;  // length, checksum of the length
constexpr size_t kFooterBytes = 4;   // checksum of the data

/// The masked checksum of a record. Without the mask, the checksum of bytes that contain checksums
/// would be weak.
uint32_t MaskedCrc(std::string_view bytes) {
  const uint32_t crc = Crc32c(bytes);
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

void AppendLittleEndian(uint64_t number, size_t bytes, std::string* to) {
  for (size_t i = 0; i < bytes; ++i) to->push_back(static_cast<char>((number >> (8 * i)) & 0xff));
}

uint64_t ReadLittleEndian(std::string_view bytes) {
  uint64_t number = 0;
  for (size_t i = bytes.size(); i-- > 0;) number = (number << 8) | static_cast<uint8_t>(bytes[i]);
  return number;
}

std::string EncodeRecord(const Event& event) {
  const std::string data = fields::Encode(event, fields::Side::kOwnDisk);
  std::string record;
  AppendLittleEndian(data.size(), 8, &record);
  AppendLittleEndian(MaskedCrc(record), 4, &record);
  record += data;
  AppendLittleEndian(MaskedCrc(data), kFooterBytes, &record);
  return record;
}

/// The data of the first record in `bytes`. None if the record is cut off or damaged.
std::optional<std::string_view> FirstRecord(std::string_view bytes) {
  if (bytes.size() < kHeaderBytes + kFooterBytes) return std::nullopt;
  if (ReadLittleEndian(bytes.substr(8, 4)) != MaskedCrc(bytes.substr(0, 8))) return std::nullopt;
  const uint64_t length = ReadLittleEndian(bytes.substr(0, 8));
  if (length > bytes.size() - kHeaderBytes - kFooterBytes) return std::nullopt;
  const std::string_view data = bytes.substr(kHeaderBytes, length);
  const std::string_view footer = bytes.substr(kHeaderBytes + length, kFooterBytes);
  if (ReadLittleEndian(footer) != MaskedCrc(data)) return std::nullopt;
  return data;
}

}  // namespace

std::string EncodeHead(std::string_view writer, double wall_seconds) {
  return EncodeRecord({.wall_time = wall_seconds,
                       .step = 0,
                       .file_version = kFileVersion,
                       .summary = {},
                       .source_metadata = SourceMetadata{std::string(writer)}});
}

std::string EncodePoint(const Point& point) {
  return EncodeRecord(
      {.wall_time = point.wall_seconds,
       .step = point.step,
       .file_version = "",
       .summary = Summary{{SummaryValue{point.tag, static_cast<float>(point.value)}}},
       .source_metadata = {}});
}

EventFile DecodeEventFile(std::string_view bytes) {
  EventFile file;
  while (const auto data = FirstRecord(bytes.substr(file.whole_bytes))) {
    absl::StatusOr<Event> event = fields::Decode<Event>(*data, fields::Side::kOwnDisk);
    if (!event.ok()) break;
    file.whole_bytes += kHeaderBytes + data->size() + kFooterBytes;
    if (event->source_metadata) file.writer = std::move(event->source_metadata->writer);
    if (!event->summary) continue;
    for (SummaryValue& value : event->summary->value) {
      if (!value.simple_value) continue;
      file.points.push_back({.tag = std::move(value.tag),
                             .step = event->step,
                             .wall_seconds = event->wall_time,
                             .value = *value.simple_value});
    }
  }
  return file;
}

}  // namespace muster::metrics
