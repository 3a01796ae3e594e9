package workerpool

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// prefixKey is the prefix of keys, which are names of Secrets in the shoot.
const prefixKey = "gardener-node-agent-"

// Key returns the name of the Secret that configures the nodes of the pool. Nodes with another key are replaced, unless the
// pool is updated in place: its key is always the same. The key is computed exactly as in Gardener, so that nodes are not
// replaced when a Shoot moves between the systems.
func (p Pool) Key() string {
	if p.InPlace() {
		return prefixKey + p.Worker.Name
	}
	return prefixKey + p.Worker.Name + "-" + digestOf(p.keyed())
}

// InPlaceHash returns the hash of what is updated in place on the machines of the pool. An extension reports it in
// status.inPlaceUpdates.workerPoolToHashMap of the Worker when all machines of the pool are updated. It is computed exactly as in Gardener,
// whose library the extensions use: like the key, from the minor version of Kubernetes, the version of the image, the times of rotations
// and the settings of kubelet that do not apply to running nodes.
func (p Pool) InPlaceHash() string {
	values := []string{fmt.Sprintf("%d.%d", p.Version.Major(), p.Version.Minor()), ptr.Deref(p.Worker.Machine.Image.Version, "")}
	return digestOf(append(values, append(p.rotated(), keyedKubelet(p.Kubelet)...)...))
}

// rotated returns the times at which rotations began for the pool.
func (p Pool) rotated() []string {
	var values []string
	for _, initiated := range []*metav1.Time{p.CAInitiated, p.KeyInitiated} {
		if initiated != nil {
			values = append(values, timeInKey(initiated))
		}
	}
	return values
}

// digestOf returns 16 hexadecimal digits of the SHA-256 of the concatenated SHA-256 of each value.
func digestOf(values []string) string {
	var digests strings.Builder
	for _, value := range values {
		digests.WriteString(digest(value))
	}
	return digest(digests.String())[:16]
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// keyed returns the values whose change replaces nodes, in the order of the key. Values that are not set are left out.
func (p Pool) keyed() []string {
	image := p.Worker.Machine.Image
	values := []string{
		fmt.Sprintf("%d.%d", p.Version.Major(), p.Version.Minor()), p.Worker.Machine.Type, image.Name + ptr.Deref(image.Version, ""),
	}
	if volume := p.Worker.Volume; volume != nil {
		values = append(values, volume.VolumeSize)
		if volume.Type != nil {
			values = append(values, *volume.Type)
		}
	}
	if p.Worker.CRI != nil {
		values = append(values, string(p.Worker.CRI.Name))
	}
	values = append(values, p.rotated()...)
	if p.NodeLocalDNSInKubelet {
		values = append(values, "node-local-dns")
	}
	return append(values, keyedKubelet(p.Kubelet)...)
}

// timeInKey returns a time in Go's default format, in UTC and whole seconds. metav1.Time decodes times as local ones, whose
// default format depends on the time zone of the process.
func timeInKey(at *metav1.Time) string {
	return at.UTC().Truncate(1e9).Format("2006-01-02 15:04:05 -0700 MST")
}

// keyedKubelet returns the settings of kubelet that do not apply to running nodes.
func keyedKubelet(kubelet corev1beta1.KubeletConfig) []string {
	var values []string
	if reserved := kubelet.KubeReserved; reserved != nil {
		values = append(values, fmt.Sprintf("%s-%s-%s-%s", reserved.CPU, reserved.Memory, reserved.PID, reserved.EphemeralStorage))
	}
	if hard := kubelet.EvictionHard; hard != nil {
		text := func(value *string) string { return ptr.Deref(value, "") }
		values = append(values, strings.Join([]string{
			text(hard.ImageFSAvailable), text(hard.ImageFSInodesFree), text(hard.MemoryAvailable), text(hard.NodeFSAvailable), text(hard.NodeFSInodesFree),
		}, "-"))
	}
	if policy := kubelet.CPUManagerPolicy; policy != nil {
		values = append(values, *policy)
	}
	return values
}
