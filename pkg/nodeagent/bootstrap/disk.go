package bootstrap

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/trellis-k8s/trellis/pkg/nodeagent/paths"
)

// diskLabel is the label of the file system with the data of kubelet.
const diskLabel = "KUBEDEV"

// device is a block device as lsblk prints it.
type device struct {
	Path        string    `json:"path"`
	Size        int64     `json:"size"`
	Type        string    `json:"type"`
	FSType      *string   `json:"fstype"`
	Label       *string   `json:"label"`
	PTType      *string   `json:"pttype"`
	MountPoints []*string `json:"mountpoints"`
	Children    []device  `json:"children"`
}

// find returns the disk for the data of kubelet: the only empty one of a size in bytes. It returns an empty text if a disk was formatted for it before.
func find(devices []device, size int64) (string, error) {
	var found []string
	for _, each := range devices {
		if isLabelled(each) {
			return "", nil
		}
		if each.Type == "disk" && each.Size == size && isEmpty(each) {
			found = append(found, each.Path)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return "", fmt.Errorf("no disk without partitions, file system and mounts has %d bytes", size)
	}
	return "", fmt.Errorf("%d empty disks have %d bytes, and it is not known which of %q is for kubelet", len(found), size, found)
}

func isLabelled(d device) bool {
	if d.Label != nil && *d.Label == diskLabel {
		return true
	}
	for _, child := range d.Children {
		if isLabelled(child) {
			return true
		}
	}
	return false
}

func isEmpty(d device) bool {
	for _, mounted := range d.MountPoints {
		if mounted != nil && *mounted != "" {
			return false
		}
	}
	return len(d.Children) == 0 && (d.FSType == nil || *d.FSType == "") && (d.PTType == nil || *d.PTType == "")
}

// dataDisk formats a disk of a size, copies the data of kubelet to it, and mounts it.
func (m Machine) dataDisk(ctx context.Context, size int64) error {
	out, err := m.Commands.Run(ctx, "lsblk", "--json", "--bytes", "--output", "PATH,SIZE,TYPE,FSTYPE,LABEL,PTTYPE,MOUNTPOINTS")
	if err != nil {
		return err
	}
	var list struct {
		Devices []device `json:"blockdevices"`
	}
	if err := json.Unmarshal(out, &list); err != nil {
		return fmt.Errorf("read the output of lsblk: %w", err)
	}
	disk, err := find(list.Devices, size)
	if err != nil || disk == "" {
		return err
	}
	// lsblk knows what udev knows. This reads the disk.
	signatures, err := m.Commands.Run(ctx, "wipefs", "--no-act", "--noheadings", disk)
	if err != nil {
		return err
	}
	if len(signatures) > 0 {
		return fmt.Errorf("%s has data: it is not formatted", disk)
	}
	m.Log.Info("Formats the data disk of kubelet", "disk", disk)
	if _, err := m.Commands.Run(ctx, "mkfs.ext4", "-L", diskLabel, "-O", "quota", "-E", "quotatype=prjquota", disk); err != nil {
		return err
	}
	return m.move(ctx, disk)
}

// move copies the data of kubelet to a disk, and mounts the disk in its place.
func (m Machine) move(ctx context.Context, disk string) (err error) {
	const copied = paths.Temporary + "/kubelet-data"
	if err := errors.Join(m.Files.MakeDirectory(copied), m.Files.MakeDirectory(paths.Kubelet)); err != nil {
		return err
	}
	if _, err := m.Commands.Run(ctx, "mount", disk, m.Files.Real(copied)); err != nil {
		return err
	}
	_, err = m.Commands.Run(ctx, "cp", "--archive", m.Files.Real(paths.Kubelet)+"/.", m.Files.Real(copied))
	_, unmounting := m.Commands.Run(context.WithoutCancel(ctx), "umount", m.Files.Real(copied))
	if err := errors.Join(err, unmounting); err != nil {
		return err
	}
	if err := os.Remove(m.Files.Real(copied)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	_, err = m.Commands.Run(ctx, "mount", "--options", "defaults,prjquota,errors=remount-ro", disk, m.Files.Real(paths.Kubelet))
	return err
}
