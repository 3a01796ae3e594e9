package installation

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"

	gardencorev1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1"
	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

// Labels of installations: digests of what they were made from.
const (
	LabelSeedSpecHash         = "seed-spec-hash"
	LabelRegistrationSpecHash = "registration-spec-hash"
	LabelDeploymentHash       = "deployment-hash"
)

const (
	// hashLength is the number of hexadecimal digits of a digest in a label.
	hashLength = 16
	// nameHashLength is that of the digest in the name of an installation, and nameLength the most characters before it: the namespace of
	// the extension, whose name is longer, has at most 63.
	nameHashLength = 10
	nameLength     = 42
)

// installation returns the installation of a registration in the Seed: that which exists, as it should be, or a new one. A new one has a
// name that follows from the Seed and the registration, so that it cannot be created twice.
func (in Inputs) installation(registration *corev1beta1.ControllerRegistration, before *corev1beta1.ControllerInstallation) (*corev1beta1.ControllerInstallation, error) {
	installation := &corev1beta1.ControllerInstallation{}
	if before != nil {
		before.DeepCopyInto(installation)
	} else {
		installation.Name = nameOf(registration, in.Seed)
	}
	installation.Labels, installation.Annotations = with(installation.Labels), with(installation.Annotations)
	seedHash, err := hashOf(in.Seed.Spec)
	if err != nil {
		return nil, err
	}
	registrationHash, err := hashOf(registration.Spec)
	if err != nil {
		return nil, err
	}
	installation.Labels[LabelSeedSpecHash], installation.Labels[LabelRegistrationSpecHash] = seedHash, registrationHash
	setOrDelete(installation.Annotations, constants.AnnotationPodSecurityEnforce, registration.Annotations[constants.AnnotationPodSecurityEnforce])
	version := corev1beta1.SchemeGroupVersion.String()
	installation.Spec.RegistrationRef = corev1.ObjectReference{
		APIVersion: version, Kind: "ControllerRegistration", Name: registration.Name, ResourceVersion: registration.ResourceVersion,
	}
	installation.Spec.SeedRef = &corev1.ObjectReference{APIVersion: version, Kind: "Seed", Name: in.Seed.Name, ResourceVersion: in.Seed.ResourceVersion}
	return installation, in.setDeployment(installation, registration)
}

// setDeployment sets what an installation has of the deployment of its registration. A registration without one is installed by others.
func (in Inputs) setDeployment(installation *corev1beta1.ControllerInstallation, registration *corev1beta1.ControllerRegistration) error {
	installation.Spec.DeploymentRef, installation.Spec.ResourceRefs = nil, nil
	delete(installation.Labels, LabelDeploymentHash)
	if registration.Spec.Deployment == nil || len(registration.Spec.Deployment.DeploymentRefs) == 0 {
		return nil
	}
	name := registration.Spec.Deployment.DeploymentRefs[0].Name
	deployment := in.deployment(name)
	if deployment == nil {
		return fmt.Errorf("ControllerRegistration %s names the ControllerDeployment %s, which does not exist: create it", registration.Name, name)
	}
	hash, err := hashOf(contentOf(deployment))
	if err != nil {
		return err
	}
	installation.Labels[LabelDeploymentHash] = hash
	installation.Spec.DeploymentRef = &corev1.ObjectReference{
		APIVersion: gardencorev1.SchemeGroupVersion.String(), Kind: "ControllerDeployment", Name: name, ResourceVersion: deployment.ResourceVersion,
	}
	for _, resource := range deployment.Resources {
		ref := resource.ResourceRef
		installation.Spec.ResourceRefs = append(installation.Spec.ResourceRefs, corev1.ObjectReference{
			APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: constants.GardenNamespace, Name: ref.Name,
			ResourceVersion: in.ResourceVersions[Resource{ref.Kind, ref.Name}],
		})
	}
	return nil
}

// contentOf returns what of a deployment its hash covers.
func contentOf(deployment *gardencorev1.ControllerDeployment) any {
	return []any{
		deployment.Helm, deployment.InjectGardenKubeconfig, deployment.Resources,
		deployment.Annotations[gardencorev1.AnnotationMigrationType], deployment.Annotations[gardencorev1.AnnotationMigrationProviderConfig],
	}
}

// Reduce replaces the chart of a deployment by its digest: charts are large, and only whether they change counts. Use it for the deployments
// of all Inputs, or of none.
func Reduce(deployment *gardencorev1.ControllerDeployment) {
	if deployment.Helm != nil && len(deployment.Helm.RawChart) > sha256.Size {
		digest := sha256.Sum256(deployment.Helm.RawChart)
		deployment.Helm.RawChart = digest[:]
	}
}

// nameOf returns the name of a new installation. A registration or a Seed that is created again gets another one: what is left of the old
// installation is not taken for it.
func nameOf(registration *corev1beta1.ControllerRegistration, seed *corev1beta1.Seed) string {
	digest := sha256.Sum256([]byte(cmp.Or(string(seed.UID), seed.Name) + "/" + cmp.Or(string(registration.UID), registration.Name)))
	name := registration.Name
	return name[:min(len(name), nameLength)] + "-" + hex.EncodeToString(digest[:])[:nameHashLength]
}

func hashOf(content any) (string, error) {
	text, err := json.Marshal(content)
	if err != nil {
		return "", fmt.Errorf("encode what a ControllerInstallation is made from: %w", err)
	}
	digest := sha256.Sum256(text)
	return hex.EncodeToString(digest[:])[:hashLength], nil
}

func with(values map[string]string) map[string]string {
	if values == nil {
		return map[string]string{}
	}
	return maps.Clone(values)
}

func setOrDelete(values map[string]string, key, value string) {
	if value == "" {
		delete(values, key)
		return
	}
	values[key] = value
}
