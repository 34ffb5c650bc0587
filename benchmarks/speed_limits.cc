// What the machine itself does with the keys and sizes of benchmarks/speed.py, in one process, with
// nothing of Muster: the limits that its figures are put beside. --help says what is measured. The
// figures are one line of JSON on stdout.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "benchmarks/key_file.h"
#include "benchmarks/lane/raw_sockets.h"
#include "benchmarks/thread_cpu.h"

namespace muster {
namespace {

constexpr char kHelp[] =
    "Usage: speed_limits keys FILE ROWS KEYS_A_CALL CALLS EXPONENT\n"
    "       speed_limits rows FILE DIM SECONDS\n"
    "       speed_limits copy BYTES SECONDS\n"
    "       speed_limits lines FILE SECONDS\n\n"
    "  keys   writes the keys that everybody asks for: zipf's law, 0 is uniform\n"
    "  rows   with these keys and rows of DIM float32: one core gathers the rows of a call into "
    "one\n"
    "         block (rows in huge pages, eight rows ahead prefetched); memcpy of such a block; "
    "TCP\n"
    "         and UNIX sockets that move messages of its size; a round trip of a request and a\n"
    "         reply of a call, answered by a bare thread\n"
    "  copy   memcpy of BYTES\n"
    "  lines  read(2) and memchr over the lines of a file in the page cache, 1 MiB at a time\n\n"
    "Each takes about SECONDS for each figure, after a warm-up; gather, memcpy and memchr count "
    "CPU\n"
    "time, which a busy machine does not distort.\n\n"
    "Example: speed_limits keys /tmp/keys 1000000 10000 64 0.99 && speed_limits rows /tmp/keys 64 "
    "1\n";

constexpr size_t kPrefetchRows = 8;
constexpr size_t kCacheLine = 64;
constexpr size_t kReadBytes = size_t{1} << 20;

enum class Pages { kOrdinary, kHuge };

/// Floats in memory that has been touched.
class Block {
 public:
  Block(size_t floats, Pages pages) : bytes_(floats * sizeof(float)) {
    void* at = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUSTER_CHECK(at != MAP_FAILED);
    ::madvise(at, bytes_, pages == Pages::kHuge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    data_ = static_cast<float*>(at);
    std::fill_n(data_, floats, 1.0f);
  }
  ~Block() { ::munmap(data_, bytes_); }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  float* data() const { return data_; }

 private:
  const size_t bytes_;
  float* data_ = nullptr;
};

/// Keeps the compiler from leaving out what fills `memory`.
void Use(const void* memory) {
  asm volatile("" : : "g"(memory) : "memory");
}

/// How often one core does `work(number)` in a second, after a warm-up of a tenth of the time.
template <typename Work>
double PerSecond(double seconds, Work&& work) {
  const auto run = [&](double limit) {
    const double begin = ThreadCpuSeconds();
    uint64_t done = 0;
    double taken = 0;
    do {
      work(done++);
      taken = ThreadCpuSeconds() - begin;
    } while (taken < limit);
    return static_cast<double>(done) / taken;
  };
  run(seconds / 10);
  return run(seconds);
}

/// The plain loop.
void Gather(const float* table, std::span<const uint64_t> keys, size_t dim, float* out) {
  for (size_t i = 0; i < keys.size(); ++i) {
    std::memcpy(out + i * dim, table + keys[i] * dim, dim * sizeof(float));
  }
}

/// The same with prefetched rows.
void GatherPrefetched(const float* table, std::span<const uint64_t> keys, size_t dim, float* out) {
  for (size_t i = 0; i < keys.size(); ++i) {
    if (i + kPrefetchRows < keys.size()) {
      const char* ahead = reinterpret_cast<const char*>(table + keys[i + kPrefetchRows] * dim);
      for (size_t at = 0; at < dim * sizeof(float); at += kCacheLine) {
        __builtin_prefetch(ahead + at);
      }
    }
    std::memcpy(out + i * dim, table + keys[i] * dim, dim * sizeof(float));
  }
}

/// Rows a second of one core.
template <typename Gatherer>
double GatherRate(const KeySequence& keys, size_t dim, Pages pages, double seconds,
                  Gatherer&& gather) {
  const Block table(keys.rows * dim, pages);
  const Block out(keys.keys_a_call * dim, pages);
  return static_cast<double>(keys.keys_a_call) * PerSecond(seconds, [&](uint64_t call) {
           gather(table.data(), keys.Call(call), dim, out.data());
           Use(out.data());
         });
}

double CopyRate(size_t bytes, double seconds) {
  const std::vector<char> from(bytes, 'x');
  std::vector<char> to(bytes);
  return static_cast<double>(bytes) * PerSecond(seconds, [&](uint64_t) {
           std::memcpy(to.data(), from.data(), bytes);
           Use(to.data());
         });
}

/// Bytes a second of messages of `bytes`, for about so long.
double SocketRateFor(SocketKind kind, size_t bytes, double seconds) {
  constexpr int kTry = 20;
  const double guess = SocketRate(kind, bytes, kTry);
  const double messages = seconds * guess / static_cast<double>(bytes);
  return SocketRate(kind, bytes, std::max(kTry, static_cast<int>(messages)));
}

struct Quantiles {
  double p50_us = 0;
  double p99_us = 0;
};

Quantiles RoundTripFor(SocketKind kind, const RoundTrip& trip, double seconds) {
  constexpr int kTry = 20;
  std::vector<double> taken = RoundTripSeconds(kind, trip, kTry);
  std::ranges::sort(taken);
  const double trips = std::min(seconds / taken[kTry / 2], 1e6);
  taken = RoundTripSeconds(kind, trip, std::max(kTry, static_cast<int>(trips)));
  std::ranges::sort(taken);
  return {.p50_us = 1e6 * taken[taken.size() / 2], .p99_us = 1e6 * taken[taken.size() * 99 / 100]};
}

int WriteKeys(const std::string& path, const KeyDraw& draw) {
  const absl::Status written = WriteKeyFile(path, DrawKeys(draw));
  if (!written.ok()) fmt::print(stderr, "speed_limits: {}\n", written.ToString());
  return written.ok() ? 0 : 1;
}

int Rows(const std::string& path, size_t dim, double seconds) {
  const auto keys = ReadKeyFile(path);
  if (!keys.ok()) {
    fmt::print(stderr, "speed_limits: {}\n", keys.status().ToString());
    return 1;
  }
  const double gathered = GatherRate(*keys, dim, Pages::kOrdinary, seconds, Gather);
  const double best = GatherRate(*keys, dim, Pages::kHuge, seconds, GatherPrefetched);
  const size_t bytes = keys->keys_a_call * dim * sizeof(float);
  const RoundTrip trip{.request_bytes = keys->keys_a_call * sizeof(uint64_t), .reply_bytes = bytes};
  const Quantiles unix_trip = RoundTripFor(SocketKind::kUnix, trip, seconds);
  const Quantiles tcp_trip = RoundTripFor(SocketKind::kTcp, trip, seconds);
  fmt::print(
      "{{\"gather_rows_per_second\": {:.6g}, \"prefetched_rows_per_second\": {:.6g}, "
      "\"memcpy_bytes_per_second\": {:.6g}, "
      "\"unix_bytes_per_second\": {:.6g}, \"tcp_bytes_per_second\": {:.6g}, "
      "\"unix_p50_us\": {:.6g}, \"unix_p99_us\": {:.6g}, \"tcp_p50_us\": {:.6g}, "
      "\"tcp_p99_us\": {:.6g}}}\n",
      gathered, best, CopyRate(bytes, seconds), SocketRateFor(SocketKind::kUnix, bytes, seconds),
      SocketRateFor(SocketKind::kTcp, bytes, seconds), unix_trip.p50_us, unix_trip.p99_us,
      tcp_trip.p50_us, tcp_trip.p99_us);
  return 0;
}

uint64_t CountLines(int fd, std::span<char> buffer) {
  uint64_t lines = 0;
  MUSTER_CHECK(::lseek(fd, 0, SEEK_SET) == 0);
  while (const ssize_t got = ::read(fd, buffer.data(), buffer.size())) {
    MUSTER_CHECK(got > 0);
    const char* const end = buffer.data() + got;
    const char* at = buffer.data();
    while ((at = static_cast<const char*>(std::memchr(at, '\n', static_cast<size_t>(end - at))))) {
      ++lines;
      ++at;
    }
  }
  return lines;
}

int Lines(const std::string& path, double seconds) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    fmt::print(stderr, "speed_limits: cannot read {}: {}\n", path, std::strerror(errno));
    return 1;
  }
  std::vector<char> buffer(kReadBytes);
  const auto bytes = static_cast<double>(::lseek(fd, 0, SEEK_END));
  const auto lines = static_cast<double>(CountLines(fd, buffer));
  const double rate = PerSecond(seconds, [&](uint64_t) { CountLines(fd, buffer); });
  ::close(fd);
  fmt::print("{{\"memchr_bytes_per_second\": {:.6g}, \"memchr_records_per_second\": {:.6g}}}\n",
             bytes * rate, lines * rate);
  return 0;
}

int Copy(size_t bytes, double seconds) {
  const double rate = CopyRate(bytes, seconds);
  fmt::print("{{\"memcpy_bytes_per_second\": {:.6g}, \"memcpy_ms\": {:.6g}}}\n", rate,
             1e3 * static_cast<double>(bytes) / rate);
  return 0;
}

template <typename T>
std::optional<T> Number(std::string_view text, T least, T most) {
  T number{};
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (code != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number >= least && number <= most ? std::optional(number) : std::nullopt;
}

int Main(std::span<char*> arguments) {
  constexpr uint64_t kMost = uint64_t{1} << 32;
  const std::string_view what = arguments.size() > 1 ? arguments[1] : "";
  const auto whole = [&](size_t index) { return Number<uint64_t>(arguments[index], 1, kMost); };
  const auto seconds = [&](size_t index) { return Number<double>(arguments[index], 1e-3, 3600); };
  if (what == "keys" && arguments.size() == 7) {
    const auto rows = whole(3), keys = whole(4), calls = whole(5);
    const auto exponent = Number<double>(arguments[6], 0, 10);
    if (rows && keys && calls && exponent) {
      return WriteKeys(
          arguments[2],
          {.rows = *rows, .keys_a_call = *keys, .calls = *calls, .exponent = *exponent});
    }
  } else if (what == "rows" && arguments.size() == 5 && whole(3) && seconds(4)) {
    return Rows(arguments[2], *whole(3), *seconds(4));
  } else if (what == "copy" && arguments.size() == 4 && whole(2) && seconds(3)) {
    return Copy(*whole(2), *seconds(3));
  } else if (what == "lines" && arguments.size() == 4 && seconds(3)) {
    return Lines(arguments[2], *seconds(3));
  }
  fmt::print(what == "--help" ? stdout : stderr, "{}", kHelp);
  return what == "--help" ? 0 : 2;
}

}  // namespace
}  // namespace muster

int main(int count, char** arguments) {
  return muster::Main({arguments, static_cast<size_t>(count)});
}
