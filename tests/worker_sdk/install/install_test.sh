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
