#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// A reader of event files that shares no code with the product: the test's own eye. It follows
/// the descriptions of TFRecord and of Protobuf's wire format.
namespace muster::metrics {

struct ReadEvent {
  double wall_seconds = 0;
  uint64_t step = 0;
  std::string file_version;
  std::string writer;
  std::string tag;
  std::optional<float> value;
};

/// A bit at a time.
inline uint32_t SlowCrc32c(std::string_view bytes) {
  uint32_t crc = 0xffffffff;
  for (const char byte : bytes) {
    crc ^= static_cast<uint8_t>(byte);
    for (int i = 0; i < 8; ++i) crc = (crc & 1) != 0 ? (crc >> 1) ^ 0x82f63b78 : crc >> 1;
  }
  return crc ^ 0xffffffff;
}

inline uint32_t SlowMasked(std::string_view bytes) {
  const uint32_t crc = SlowCrc32c(bytes);
  return (crc >> 15 | crc << 17) + 0xa282ead8;
}

template <typename T>
T Little(std::string_view bytes) {
  T value{};
  std::memcpy(&value, bytes.data(), sizeof(value));
  return value;
}

/// Calls `see(number, wire_type, varint, bytes)` for each field of a message; false: malformed.
template <typename See>
bool EachField(std::string_view message, const See& see) {
  size_t at = 0;
  const auto varint = [&](uint64_t* value) {
    *value = 0;
    for (int shift = 0; at < message.size() && shift < 64; shift += 7) {
      const auto byte = static_cast<uint8_t>(message[at++]);
      *value |= uint64_t{byte & 0x7fu} << shift;
      if ((byte & 0x80) == 0) return true;
    }
    return false;
  };
  while (at < message.size()) {
    uint64_t key = 0;
    uint64_t number = 0;
    if (!varint(&key)) return false;
    size_t length = 0;
    if ((key & 7) == 0) {
      if (!varint(&number)) return false;
    } else if ((key & 7) == 1) {
      length = 8;
    } else if ((key & 7) == 5) {
      length = 4;
    } else if ((key & 7) == 2) {
      if (!varint(&number)) return false;
      length = number;
    } else {
      return false;
    }
    if (length > message.size() - at) return false;
    see(key >> 3, key & 7, number, message.substr(at, length));
    at += length;
  }
  return true;
}

inline bool ReadOne(std::string_view data, ReadEvent* event) {
  bool well = true;
  const auto value = [&](uint64_t number, uint64_t, uint64_t, std::string_view bytes) {
    if (number == 1) event->tag = bytes;
    if (number == 2) event->value = Little<float>(bytes);
  };
  const auto in_summary = [&](uint64_t number, uint64_t, uint64_t, std::string_view bytes) {
    if (number == 1) well = EachField(bytes, value) && well;
  };
  const auto in_source = [&](uint64_t number, uint64_t, uint64_t, std::string_view bytes) {
    if (number == 1) event->writer = bytes;
  };
  well = EachField(data,
                   [&](uint64_t number, uint64_t type, uint64_t varint, std::string_view bytes) {
                     if (number == 1 && type == 1) event->wall_seconds = Little<double>(bytes);
                     if (number == 2 && type == 0) event->step = varint;
                     if (number == 3 && type == 2) event->file_version = bytes;
                     if (number == 5 && type == 2) well = EachField(bytes, in_summary) && well;
                     if (number == 10 && type == 2) well = EachField(bytes, in_source) && well;
                   }) &&
         well;
  return well;
}

/// Nothing if any byte of the file is not as it must be.
inline std::optional<std::vector<ReadEvent>> ReadEvents(std::string_view file) {
  std::vector<ReadEvent> events;
  while (!file.empty()) {
    if (file.size() < 16) return std::nullopt;
    const auto length = Little<uint64_t>(file);
    if (Little<uint32_t>(file.substr(8)) != SlowMasked(file.substr(0, 8))) return std::nullopt;
    if (length > file.size() - 16) return std::nullopt;
    const std::string_view data = file.substr(12, length);
    if (Little<uint32_t>(file.substr(12 + length)) != SlowMasked(data)) return std::nullopt;
    if (!ReadOne(data, &events.emplace_back())) return std::nullopt;
    file.remove_prefix(16 + length);
  }
  return events;
}

}  // namespace muster::metrics
