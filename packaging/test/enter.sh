#!/bin/sh
# Runs a command in a root of its own, without a network: enter.sh ROOT COMMAND...
# MOUNTS: files and directories to show in it, read-only, as "FROM:TO FROM:TO".
# BOOT: the command is an init and becomes the first process.
#
# With pivot_root, not chroot: in a chroot the kernel refuses user namespaces,
# and Portway gives a namespace to each server.
set -eu
if [ "${1:-}" != --inside ]; then
    # With the last process of the namespace everything in it ends.
    exec unshare --mount --propagation private --pid --net --ipc --uts --cgroup --fork --kill-child -- "$0" --inside "$@"
fi
root=$2
shift 2
mount --bind "$root" "$root"
cd "$root"
mkdir -p mnt proc dev sys
mount -t proc proc proc
mount -t sysfs -o ro sysfs sys
mount --rbind /dev dev
mount -t tmpfs tmpfs run
for pair in ${MOUNTS:-}; do
    from=${pair%%:*} to=.${pair##*:}
    if [ -d "$from" ]; then mkdir -p "$to"; else mkdir -p "$(dirname "$to")" && touch "$to"; fi
    mount --bind "$from" "$to"
    mount -o remount,bind,ro "$to"
done
ip link set lo up
pivot_root . mnt
umount -l /mnt
cd /
if [ -n "${BOOT:-}" ]; then
    exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin container=portway "$@"
fi
# No exec: the first process reaps what others leave.
env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 \
    DEBIAN_FRONTEND=noninteractive "$@"
