#!/bin/bash
# use_sdk.sh <cmake> <prefix> <consumer's source> <work folder> <compiler> <sanitizers>
# Checks what the library of an installed SDK exports and needs, and builds and runs a consumer with CMake and pkg-config.
set -euo pipefail
cmake=$1 prefix=$2 source=$3 work=$4 compiler=$5 sanitizers=$6
fail() { echo "FAILED: $*" >&2; exit 1; }

rm -rf "$work/consumer" "$work/consumer_of_pkg_config"
library=$(find "$prefix" -name libmuster.so)
[ -n "$library" ] || fail "no libmuster.so below $prefix"
readelf -d "$library" | grep -q 'SONAME.*\[libmuster\.so\.[0-9.]*\]' || fail "no soname"

# Only public classes are visible.
exported=$(nm -D --defined-only -C "$library" | sed 's/^[0-9a-f]* *[A-Za-z] //')
[ -n "$sanitizers" ] || strange=$(grep -v '^muster::' <<< "$exported" || true)
[ -z "${strange:-}" ] || fail "exported beside muster::
$(head -20 <<< "$strange")"
inner=$(grep -E '^muster::(sdk|internal|wire|[a-z_]*_internal)::' <<< "$exported" || true)
[ -z "$inner" ] || fail "internals are exported:
$(head -20 <<< "$inner")"
grep -q '^muster::Session::Connect(' <<< "$exported" || fail "Session::Connect is not exported"

# A trainer may bring its own Protobuf and gRPC, of any version.
needed=$(ldd "$library")
if grep -E 'protobuf|grpc' <<< "$needed"; then fail "the library needs Protobuf or gRPC"; fi
# A security fix of OpenSSL reaches trainers without a new build.
grep -q 'libssl\.so' <<< "$needed" || fail "the library does not need libssl"
if grep spdlog <<< "$needed"; then fail "the library needs spdlog"; fi

# No third-party header behind the public ones.
strange=$(grep -rhE '^#include' "$prefix/include" | grep -vE '^#include ("muster/[a-z_]+\.h"|<[a-z_]+>)$' || true)
[ -z "$strange" ] || fail "public headers include $strange"

flags=
[ -z "$sanitizers" ] || flags=-fsanitize=$sanitizers
"$cmake" -S "$source" -B "$work/consumer" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_CXX_COMPILER="$compiler" \
  -DCMAKE_CXX_FLAGS="-Wall -Wextra -Werror $flags" > "$work/consumer.log" 2>&1 || { cat "$work/consumer.log"; fail "configure"; }
"$cmake" --build "$work/consumer" >> "$work/consumer.log" 2>&1 || { cat "$work/consumer.log"; fail "build"; }
said=$(env -u MUSTER_MASTER "$work/consumer/consumer") || fail "the consumer ended with $?: $said"
grep -q MUSTER_MASTER <<< "$said" || fail "the consumer said: $said"


# With pkg-config, and nothing else to say where the library is.
PKG_CONFIG_LIBDIR=$(dirname "$library")/pkgconfig
export PKG_CONFIG_LIBDIR
# shellcheck disable=SC2046,SC2086  # options, one word each
"$compiler" $flags "$source/main.cc" -o "$work/consumer_of_pkg_config" $(pkg-config --cflags --libs muster)
said=$(env -u MUSTER_MASTER LD_LIBRARY_PATH="$(dirname "$library")" "$work/consumer_of_pkg_config") ||
  fail "the consumer that pkg-config built ended with $?: $said"
echo "installed, exported and needed as it should be"
