package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/trellis-k8s/trellis/pkg/nodeagent/paths"
)

const (
	// namespace of containerd in which kubelet has its images.
	namespace = "k8s.io"
	// pullTimeout limits how long an image is pulled, and mountTimeout how long it is mounted.
	pullTimeout, mountTimeout = 10 * time.Minute, time.Minute
)

// Images reads files of container images.
type Images interface {
	// Open calls read with the content of the file at a path in an image. containerd pulls the image if it does not have it, and verifies the
	// digests of its layers.
	Open(ctx context.Context, image, path string, read func(io.Reader) error) error
}

// Containerd reads files of images with ctr, the command line of containerd.
type Containerd struct {
	Files    Files
	Commands Commands
}

// Open implements Images.
func (c Containerd) Open(ctx context.Context, image, path string, read func(io.Reader) error) (err error) {
	if err := c.pull(ctx, image); err != nil {
		return fmt.Errorf("pull image %s: %w", image, err)
	}
	sum := sha256.Sum256([]byte(image))
	directory := paths.Temporary + "/image-" + hex.EncodeToString(sum[:8])
	// What an interrupted process left.
	c.unmount(ctx, directory)
	if err := c.Files.MakeDirectory(directory); err != nil {
		return fmt.Errorf("mount image %s: %w", image, err)
	}
	limited, cancel := context.WithTimeout(ctx, mountTimeout)
	defer cancel()
	defer c.unmount(context.WithoutCancel(ctx), directory)
	if _, err := c.ctr(limited, "images", "mount", image, c.Files.Real(directory)); err != nil {
		return fmt.Errorf("mount image %s: %w", image, err)
	}
	// The root keeps symbolic links of the image from leading to files of the machine.
	root, err := os.OpenRoot(c.Files.Real(directory))
	if err != nil {
		return fmt.Errorf("read image %s: %w", image, err)
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	file, err := root.Open(strings.TrimPrefix(path, "/"))
	if err != nil {
		return fmt.Errorf("read image %s: %w", image, err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return read(file)
}

func (c Containerd) pull(ctx context.Context, image string) error {
	ctx, cancel := context.WithTimeout(ctx, pullTimeout)
	defer cancel()
	found, err := c.ctr(ctx, "images", "ls", "--quiet", "name=="+image)
	if err != nil {
		return err
	}
	if strings.TrimSpace(string(found)) == image {
		return nil
	}
	_, err = c.ctr(ctx, "images", "pull", "--hosts-dir", c.Files.Real(paths.ContainerdRegistries), image)
	return err
}

// unmount unmounts an image, if one is mounted, and removes its snapshot.
func (c Containerd) unmount(ctx context.Context, directory string) {
	actual := c.Files.Real(directory)
	if _, err := os.Stat(actual); err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, mountTimeout)
	defer cancel()
	_, _ = c.ctr(ctx, "images", "unmount", "--rm", actual)
	_ = os.Remove(actual) // only if it is empty: nothing is mounted
}

func (c Containerd) ctr(ctx context.Context, args ...string) ([]byte, error) {
	return c.Commands.Run(ctx, "ctr", append([]string{"--namespace", namespace}, args...)...)
}
