#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace muster {

/// A blocking socket that is connected to `address`: unix:PATH or 127.0.0.1:PORT. Ends the program
/// when that fails, as all functions here do.
int ConnectBench(const std::string& address);
/// Reads exactly so many bytes.
void ReadAll(int fd, void* to, size_t bytes);
/// Writes exactly so many bytes.
void WriteAll(int fd, const void* from, size_t bytes);

enum class SocketKind { kUnix, kTcp };

/// The speed of this machine's sockets in bytes a second, without other work: one thread writes
/// messages of this size, and the calling thread reads them.
double SocketRate(SocketKind kind, size_t message_bytes, int messages);

/// A thread answers each request of so many bytes with a reply of so many; the times between a
/// request and its reply, in seconds, in the order in which they came.
struct RoundTrip {
  size_t request_bytes = 0;
  size_t reply_bytes = 0;
};
std::vector<double> RoundTripSeconds(SocketKind kind, const RoundTrip& trip, int trips);

}  // namespace muster
