#!/usr/bin/env bash
# Usage: fresh-debian.sh FOLDER COMMAND [ARGUMENT…]
# Runs a command on a bare Debian 12: a new root that holds nothing but the essential packages and
# apt, with a copy of FOLDER as the working directory. The root is deleted afterwards. Needs root,
# mmdebstrap and the network. Takes about a minute more than the command does.
# Environment: FRESH_ROOT=FILE.tar keeps the root for later calls, before anything ran in it.
set -euo pipefail
[ $# -ge 2 ] || { sed -n '2s/^# //p' "$0" >&2; exit 2; }
fail() { echo "fresh-debian.sh: $*" >&2; exit 1; }
[ "$(id -u)" -eq 0 ] || fail 'only root can change the root folder'
for tool in mmdebstrap unshare; do
  command -v $tool >/dev/null || fail "needs $tool (apt-get install $tool)"
done
folder=$(realpath "$1")
shift
work=$(mktemp -d /var/tmp/fresh-debian.XXXXXX)
trap 'rm -rf --one-file-system "$work"' EXIT
tar=${FRESH_ROOT:-$work/root.tar}
[ -e "$tar" ] || mmdebstrap --quiet --variant=minbase bookworm "$tar"
root=$work/root
mkdir "$root"
tar -C "$root" -xf "$tar"

# How this machine reaches the network: the name server, and a proxy with its certificates.
cp -L /etc/resolv.conf "$root/etc/resolv.conf"
certificates=/etc/ssl/certs/ca-certificates.crt
cp -L $certificates "$root/etc/machine.crt"
mapfile -t network < <(env | grep -iE '^(https?|no)_proxy=' || true)
cp -a "$folder" "$root/srv/$(basename "$folder")"

# exec: the namespaces end with the command, and with them the mounts.
unshare --mount --pid --uts --ipc --fork --kill-child bash -euc '
  root=$1
  mount --bind "$root" "$root" # chroot alone is no mount, which some programs ask for
  mount -t proc proc "$root/proc"
  mount -t sysfs -o ro sysfs "$root/sys"
  mount -t tmpfs tmpfs "$root/dev"
  mkdir "$root/dev/shm" "$root/dev/pts"
  mount -t tmpfs tmpfs "$root/dev/shm"
  mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
  ln -s pts/ptmx "$root/dev/ptmx"
  ln -s /proc/self/fd "$root/dev/fd"
  for device in null zero full random urandom tty; do
    touch "$root/dev/$device"
    mount --bind "/dev/$device" "$root/dev/$device"
  done
  shift
  exec chroot "$root" "$@"
' bash "$root" env -i "${network[@]}" HOME=/root TERM=dumb LANG=C.UTF-8 PIP_CERT=/etc/machine.crt \
  PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
  bash -c 'cd "/srv/$1" && shift && exec "$@"' bash "$(basename "$folder")" "$@"
