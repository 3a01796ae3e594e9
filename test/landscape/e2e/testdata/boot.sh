#!/bin/sh
# Boots the exported root file system of machines in a virtual machine, with Debian's kernel. Usage: boot.sh ARCHIVE FILES DOWNLOADS
# ARCHIVE is the root file system, FILES a directory with files to add to it, DOWNLOADS the cache of Debian packages. It works in the current
# directory, and exits when the virtual machine stops.
set -e
archive=$1 files=$2 downloads=$3

# The root file system has no kernel. A real machine loads it from its boot device.
if [ ! -d "$downloads" ]; then
  rm -rf "$downloads.unfinished"
  mkdir -p "$downloads.unfinished"
  ( cd "$downloads.unfinished"
    kernel=$(apt-cache depends linux-image-cloud-amd64 | awk '$1 == "Depends:" { print $2; exit }')
    apt-get download -qq "$kernel" busybox-static
    for package in *.deb; do dpkg-deb -x "$package" .; done
    rm -- *.deb )
  mv "$downloads.unfinished" "$downloads"
fi
set -- "$downloads"/lib/modules/*
version=${1##*/}

mkdir root
tar -C root -xzf "$archive"
cp -a "$files/." root/
cp -a "$downloads/lib/modules" root/lib/
chroot root depmod "$version"
mke2fs -q -t ext4 -d root disk 4G
rm -rf root

# The modules that are needed to find the disk.
mkdir -p initramfs/dev initramfs/proc initramfs/root
cp "$downloads/bin/busybox" initramfs/
for module in virtio/virtio virtio/virtio_ring virtio/virtio_pci_modern_dev virtio/virtio_pci_legacy_dev virtio/virtio_pci block/virtio_blk; do
  cp "$downloads/lib/modules/$version/kernel/drivers/$module.ko" initramfs/
done
cat > initramfs/init <<'END'
#!/busybox sh
for module in virtio_ring virtio virtio_pci_modern_dev virtio_pci_legacy_dev virtio_pci virtio_blk; do /busybox insmod /$module.ko; done
/busybox mount -t devtmpfs devtmpfs /dev
until [ -b /dev/vda ]; do /busybox sleep 0.1; done
/busybox mount -t ext4 /dev/vda /root
/busybox mount --move /dev /root/dev
exec /busybox switch_root /root /sbin/init
END
chmod +x initramfs/init
( cd initramfs && find . | "$downloads/bin/busybox" cpio -o -H newc > ../initrd 2>/dev/null )

# The emulator needs no rights and no devices of the host, which might be a virtual machine itself.
exec qemu-system-x86_64 -accel tcg,thread=multi -cpu max -smp 2 -m 2048 -display none -no-reboot -serial stdio -monitor none \
  -kernel "$downloads/boot/vmlinuz-$version" -initrd initrd -append "console=ttyS0 panic=-1 mitigations=off systemd.log_target=console" \
  -drive file=disk,format=raw,if=virtio,cache=unsafe -netdev user,id=net -device virtio-net-pci,netdev=net
