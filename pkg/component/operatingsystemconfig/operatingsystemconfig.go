// Package operatingsystemconfig contains what the nodes of a worker pool run and which files they have. A new machine begins
// with the units and files of purpose provision, which start the node agent; the node agent then applies those of purpose
// reconcile. Names, paths and units are the same as in Gardener, because webhooks of infrastructures change them.
package operatingsystemconfig

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/workerpool"
)

// Suffixes of the names of the two OperatingSystemConfigs of a pool, after its key.
const (
	SuffixProvision = "-init"
	SuffixReconcile = "-original"
)

// labelMutated makes the webhooks of infrastructures see the objects (Gardener).
const labelMutated = "provider.extensions.gardener.cloud/mutated-by-controlplane-webhook"

// Modes of files.
const (
	modeSecret  = 0o600
	modeShared  = 0o640
	modeFile    = 0o644
	modeProgram = 0o755
)

// Values are the inputs of both OperatingSystemConfigs of a pool.
type Values struct {
	// Namespace of the control plane.
	Namespace string
	Pool      workerpool.Pool
	// CABundle are the authorities of the API server, KubeletCA those that sign clients of kubelet, in PEM format. ExtraCAs are
	// further ones that nodes trust: those of the CloudProfile and of the pool.
	CABundle, KubeletCA, ExtraCAs string
	// ClusterDomain is the DNS domain of the cluster, ClusterDNS are the addresses of its DNS servers.
	ClusterDomain string
	ClusterDNS    []string
	// NodeAgent is the configuration of the node agent, NodeAgentVersion is in the name of its file.
	NodeAgent, NodeAgentVersion string
	// SSHKeys are the public keys of the user gardener, one a line; empty if nodes accept no SSH connections.
	SSHKeys string
	// Images are the references of images with programs for nodes.
	Images Images
	// PreferIPv6 is set if IPv6 is the first address family of the cluster.
	PreferIPv6 bool
	// MonitorGracePeriod is after how many seconds without a sign of life a node is not ready.
	MonitorGracePeriod int
	// WithoutKubeProxy is set if the cluster has no kube-proxy, which raises the number of connections that nodes track.
	WithoutKubeProxy bool
}

// Images are the references of images.
type Images struct {
	// NodeAgent contains the node agent, Kubelet contains kubelet. Pause is the sandbox of Pods.
	NodeAgent, Kubelet, Pause string
}

// content are units and files of a component.
type content struct {
	units []extensionsv1alpha1.Unit
	files []extensionsv1alpha1.File
}

// provision are the components of a new machine, in their order.
var provision = []func(Values) (content, error){nodeInit, sshd, user}

// reconcile are the components of a node, in their order.
var reconcile = []func(Values) (content, error){
	kubeletMount, rootCertificates, containerd, journald, kernel, kubelet, sshd, nodeAgent, user,
}

// Objects returns the two OperatingSystemConfigs of a pool.
func Objects(values Values) (provisioned, reconciled *extensionsv1alpha1.OperatingSystemConfig, err error) {
	provisioned = newConfig(values, SuffixProvision, extensionsv1alpha1.OperatingSystemConfigPurposeProvision)
	if err := fill(provisioned, values, provision); err != nil {
		return nil, nil, err
	}
	reconciled = newConfig(values, SuffixReconcile, extensionsv1alpha1.OperatingSystemConfigPurposeReconcile)
	if err := fill(reconciled, values, reconcile); err != nil {
		return nil, nil, err
	}
	reconciled.Spec.CRIConfig = &extensionsv1alpha1.CRIConfig{
		Name: extensionsv1alpha1.CRIName(values.Pool.CRI), CgroupDriver: ptr.To(extensionsv1alpha1.CgroupDriverSystemd),
		Containerd: &extensionsv1alpha1.ContainerdConfig{SandboxImage: values.Images.Pause},
	}
	if values.Pool.InPlace() {
		reconciled.Spec.InPlaceUpdates = inPlace(values.Pool)
	}
	return provisioned, reconciled, nil
}

func newConfig(values Values, suffix string, purpose extensionsv1alpha1.OperatingSystemConfigPurpose) *extensionsv1alpha1.OperatingSystemConfig {
	config := &extensionsv1alpha1.OperatingSystemConfig{ObjectMeta: metav1.ObjectMeta{
		Namespace: values.Namespace, Name: values.Pool.Key() + suffix,
		Labels: map[string]string{constants.LabelWorkerPool: values.Pool.Worker.Name, labelMutated: "true"},
	}}
	config.Spec.Type, config.Spec.Purpose = values.Pool.Worker.Machine.Image.Name, purpose
	config.Spec.ProviderConfig = values.Pool.Worker.Machine.Image.ProviderConfig
	return config
}

func fill(config *extensionsv1alpha1.OperatingSystemConfig, values Values, components []func(Values) (content, error)) error {
	for _, component := range components {
		added, err := component(values)
		if err != nil {
			return fmt.Errorf("compute OperatingSystemConfig %s: %w", config.Name, err)
		}
		config.Spec.Units = append(config.Spec.Units, added.units...)
		config.Spec.Files = append(config.Spec.Files, added.files...)
	}
	return nil
}

// inPlace returns the versions to which the node agent updates nodes that are not replaced.
func inPlace(pool workerpool.Pool) *extensionsv1alpha1.InPlaceUpdates {
	updates := &extensionsv1alpha1.InPlaceUpdates{
		OperatingSystemVersion: ptr.Deref(pool.Worker.Machine.Image.Version, ""), KubeletVersion: pool.Version.String(),
	}
	if pool.CAInitiated == nil && pool.KeyInitiated == nil {
		return updates
	}
	updates.CredentialsRotation = &extensionsv1alpha1.CredentialsRotation{}
	if pool.CAInitiated != nil {
		updates.CredentialsRotation.CertificateAuthorities = &extensionsv1alpha1.CARotation{LastInitiationTime: pool.CAInitiated}
	}
	if pool.KeyInitiated != nil {
		updates.CredentialsRotation.ServiceAccountKey = &extensionsv1alpha1.ServiceAccountKeyRotation{LastInitiationTime: pool.KeyInitiated}
	}
	return updates
}

// textFile returns a file with a content.
func textFile(path string, mode uint32, text string) extensionsv1alpha1.File {
	return extensionsv1alpha1.File{
		Path: path, Permissions: ptr.To(mode),
		Content: extensionsv1alpha1.FileContent{Inline: &extensionsv1alpha1.FileContentInline{Data: text}},
	}
}

// programFile returns a program from an image.
func programFile(path, image, inImage string) extensionsv1alpha1.File {
	return extensionsv1alpha1.File{
		Path: path, Permissions: ptr.To[uint32](modeProgram),
		Content: extensionsv1alpha1.FileContent{ImageRef: &extensionsv1alpha1.FileContentImageRef{Image: image, FilePathInImage: inImage}},
	}
}

// startedUnit returns a unit that is started with the node and now.
func startedUnit(name, text string, files ...string) extensionsv1alpha1.Unit {
	return extensionsv1alpha1.Unit{
		Name: name, Command: ptr.To(extensionsv1alpha1.CommandStart), Enable: ptr.To(true), Content: ptr.To(text), FilePaths: files,
	}
}
