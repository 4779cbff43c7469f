#!/bin/sh
# Runs the bundle's program of this name. If the system's C library is older than the program needs,
# or is a different one, the bundle's own is used (LLOYDBENCH_BUNDLED_GLIBC=1 forces that, =0
# forbids it).
set -eu
needed=@GLIBC@
loader=@LOADER@

self=$0
while [ -L "$self" ]; do
  target=$(readlink "$self")
  case $target in /*) self=$target ;; *) self=$(dirname "$self")/$target ;; esac
done
name=$(basename "$self")
home=$(cd "$(dirname "$self")" && pwd -P)
program=$home/libexec/$name
# The program starts copies of itself, but cannot see its own path under the bundle's C library.
export LLOYDBENCH_HOME="$home" LLOYDBENCH_EXEC="$home/$name" LLOYDBENCH_BINARY="$program"

bundled=${LLOYDBENCH_BUNDLED_GLIBC:-}
if [ -z "$bundled" ]; then
  have=$(getconf GNU_LIBC_VERSION 2>/dev/null | sed 's/^glibc //') || have=
  bundled=1
  older=$(printf '%s\n%s\n' "$needed" "$have" | sort -t . -k 1,1n -k 2,2n | head -n 1)
  if [ -n "$have" ] && [ "$older" = "$needed" ]; then bundled=0; fi
fi
[ "$bundled" = 1 ] || exec "$program" "$@"

# The GPU's driver is the system's, so the folders where drivers are installed follow our libraries.
path=$home/lib/glibc:$home/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
for directory in /usr/local/nvidia/lib64 /usr/lib/wsl/lib /usr/lib/x86_64-linux-gnu \
  /usr/lib/aarch64-linux-gnu /usr/lib64 /lib64; do
  [ ! -d "$directory" ] || path=$path:$directory
done
exec "$home/lib/glibc/$loader" --library-path "$path" --argv0 "$home/$name" "$program" "$@"
