package podprocess

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Pod has what the first container of a Pod runs with.
type Pod struct {
	// Args are the flags of the container, with paths of this machine.
	Args []string
	// Directory has a directory with the files of each volume.
	Directory string
	// Volumes are those of the Pod.
	Volumes []corev1.Volume

	namespace string
	replaced  *strings.Replacer
}

// New returns a Pod whose files are written below a directory. In its arguments and files, paths below the mounts of its first container become
// paths below the directory, and more pairs of strings are replaced: the old one, then the new one.
func New(namespace string, spec corev1.PodSpec, directory string, more ...string) *Pod {
	container, replaced := spec.Containers[0], slices.Clone(more)
	mounts := slices.Clone(container.VolumeMounts)
	slices.SortFunc(mounts, func(a, b corev1.VolumeMount) int { return -cmp.Compare(len(a.MountPath), len(b.MountPath)) })
	for _, mount := range mounts {
		replaced = append(replaced, mount.MountPath+"/", filepath.Join(directory, mount.Name)+"/")
	}
	p := &Pod{Directory: directory, Volumes: spec.Volumes, namespace: namespace, replaced: strings.NewReplacer(replaced...)}
	flags := container.Args
	if len(container.Command) > 0 {
		flags = slices.Concat(container.Command[1:], container.Args)
	}
	for _, flag := range flags {
		p.Args = append(p.Args, p.replaced.Replace(flag))
	}
	return p
}

// Write writes the files of all volumes. The errors name the objects and keys that do not exist yet.
func (p *Pod) Write(ctx context.Context, c client.Reader) error {
	var errs []error
	for _, volume := range p.Volumes {
		errs = append(errs, p.WriteVolume(ctx, c, volume))
	}
	return errors.Join(errs...)
}

// WriteVolume writes the files of one volume.
func (p *Pod) WriteVolume(ctx context.Context, c client.Reader, volume corev1.Volume) error {
	files, err := p.files(ctx, c, volume)
	if err != nil {
		return fmt.Errorf("volume %s: %w", volume.Name, err)
	}
	if err := os.MkdirAll(filepath.Join(p.Directory, volume.Name), 0o700); err != nil {
		return err
	}
	for name, content := range files {
		if err := writeFile(filepath.Join(p.Directory, volume.Name, name), []byte(p.replaced.Replace(string(content)))); err != nil {
			return err
		}
	}
	return nil
}

// writeFile replaces a file at once: programs read it again at any time.
func writeFile(path string, content []byte) error {
	before := path + ".new"
	if err := os.WriteFile(before, content, 0o600); err != nil {
		return err
	}
	return os.Rename(before, path)
}

// files reads the contents of a volume.
func (p *Pod) files(ctx context.Context, c client.Reader, volume corev1.Volume) (map[string][]byte, error) {
	files := map[string][]byte{}
	switch {
	case volume.Secret != nil:
		secret := &corev1.Secret{}
		err := c.Get(ctx, client.ObjectKey{Namespace: p.namespace, Name: volume.Secret.SecretName}, secret)
		return secret.Data, err
	case volume.ConfigMap != nil:
		configMap := &corev1.ConfigMap{}
		err := c.Get(ctx, client.ObjectKey{Namespace: p.namespace, Name: volume.ConfigMap.Name}, configMap)
		for name, content := range configMap.Data {
			files[name] = []byte(content)
		}
		return files, err
	case volume.Projected != nil:
		for _, source := range volume.Projected.Sources {
			if source.Secret == nil {
				continue // for example the token of the Pod
			}
			secret := &corev1.Secret{}
			if err := c.Get(ctx, client.ObjectKey{Namespace: p.namespace, Name: source.Secret.Name}, secret); err != nil {
				return nil, err
			}
			for _, item := range source.Secret.Items {
				if len(secret.Data[item.Key]) == 0 {
					return nil, fmt.Errorf("the Secret %s has no key %s yet", secret.Name, item.Key)
				}
				files[item.Path] = secret.Data[item.Key]
			}
		}
	}
	return files, nil
}
