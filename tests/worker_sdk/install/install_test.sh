#!/bin/bash
# install_test.sh <cmake> <build folder> <consumer's source> <work folder> <compiler> <sanitizers>
# Installs the SDK, and uses it as it was installed.
set -euo pipefail
cmake=$1 build=$2 source=$3 work=$4 compiler=$5 sanitizers=$6
prefix=$work/prefix

rm -rf "$prefix"
for component in muster_library muster_sdk; do
  "$cmake" --install "$build" --prefix "$prefix" --component "$component" > /dev/null
done
"$(dirname "$0")/use_sdk.sh" "$cmake" "$prefix" "$source" "$work" "$compiler" "$sanitizers"

# The tutorial's reader copies its folder, and builds it with the installed SDK.
rm -rf "$work/tutorial"
cp -r "$(dirname "$0")/../../../examples/tutorial" "$work/tutorial"
flags=
[ -z "$sanitizers" ] || flags=-fsanitize=$sanitizers
{
  "$cmake" -S "$work/tutorial" -B "$work/tutorial/build" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_CXX_COMPILER="$compiler" \
    -DCMAKE_CXX_FLAGS="-Wall -Wextra -Werror $flags"
  "$cmake" --build "$work/tutorial/build"
} > "$work/tutorial.log" 2>&1 || { cat "$work/tutorial.log"; echo "FAILED: the tutorial cannot be built" >&2; exit 1; }
said=$(env -u MUSTER_MASTER "$work/tutorial/build/tutorial_trainer" 2>&1) && { echo "FAILED: a trainer without a job ended well" >&2; exit 1; }
grep -q MUSTER_MASTER <<< "$said" || { echo "FAILED: the tutorial's trainer said: $said" >&2; exit 1; }
