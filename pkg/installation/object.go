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

// Labels of installations with digests of their inputs.
const (
	LabelSeedSpecHash         = "seed-spec-hash"
	LabelRegistrationSpecHash = "registration-spec-hash"
	LabelDeploymentHash       = "deployment-hash"
)

const (
	// hashLength is the number of hexadecimal digits of a digest in a label.
	hashLength = 16
	// nameHashLength is the length of the digest in the name of an installation. nameLength limits the part before it,
	// because the namespace of the extension, whose name is longer, has at most 63 characters.
	nameHashLength = 10
	nameLength     = 42
)

// installation returns the wanted installation of a registration in the Seed, based on the existing one if there is one.
// The name of a new one depends only on the Seed and the registration, so that it cannot be created twice.
func (in Inputs) installation(
	registration *corev1beta1.ControllerRegistration, before *corev1beta1.ControllerInstallation,
) (*corev1beta1.ControllerInstallation, error) {
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
	setOrDelete(
		installation.Annotations, constants.AnnotationPodSecurityEnforce,
		registration.Annotations[constants.AnnotationPodSecurityEnforce],
	)
	version := corev1beta1.SchemeGroupVersion.String()
	installation.Spec.RegistrationRef = corev1.ObjectReference{
		APIVersion: version, Kind: "ControllerRegistration", Name: registration.Name, ResourceVersion: registration.ResourceVersion,
	}
	installation.Spec.SeedRef = &corev1.ObjectReference{
		APIVersion: version, Kind: "Seed", Name: in.Seed.Name, ResourceVersion: in.Seed.ResourceVersion,
	}
	return installation, in.setDeployment(installation, registration)
}

// setDeployment sets the fields that depend on the deployment of the registration. A registration without a deployment is
// installed by others.
func (in Inputs) setDeployment(installation *corev1beta1.ControllerInstallation, registration *corev1beta1.ControllerRegistration) error {
	installation.Spec.DeploymentRef, installation.Spec.ResourceRefs = nil, nil
	delete(installation.Labels, LabelDeploymentHash)
	if registration.Spec.Deployment == nil || len(registration.Spec.Deployment.DeploymentRefs) == 0 {
		return nil
	}
	name := registration.Spec.Deployment.DeploymentRefs[0].Name
	deployment := in.deployment(name)
	if deployment == nil {
		return fmt.Errorf("ControllerRegistration %s refers to ControllerDeployment %s, which does not exist: create it", registration.Name, name)
	}
	hash, err := hashOf(contentOf(deployment))
	if err != nil {
		return err
	}
	installation.Labels[LabelDeploymentHash] = hash
	installation.Spec.DeploymentRef = &corev1.ObjectReference{
		APIVersion: gardencorev1.SchemeGroupVersion.String(), Kind: "ControllerDeployment",
		Name: name, ResourceVersion: deployment.ResourceVersion,
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

// contentOf returns the fields of a deployment that its hash covers.
func contentOf(deployment *gardencorev1.ControllerDeployment) any {
	return []any{
		deployment.Helm, deployment.InjectGardenKubeconfig, deployment.Resources,
		deployment.Annotations[gardencorev1.AnnotationMigrationType], deployment.Annotations[gardencorev1.AnnotationMigrationProviderConfig],
	}
}

// Reduce replaces the chart of a deployment by its digest, because charts are large and the decision only needs to know
// whether they change. Apply it to the deployments of all Inputs or of none.
func Reduce(deployment *gardencorev1.ControllerDeployment) {
	if deployment.Helm != nil && len(deployment.Helm.RawChart) > sha256.Size {
		digest := sha256.Sum256(deployment.Helm.RawChart)
		deployment.Helm.RawChart = digest[:]
	}
}

// nameOf returns the name of a new installation. It depends on UIDs, so that the installation of a recreated registration
// or Seed is not confused with remains of the old one.
func nameOf(registration *corev1beta1.ControllerRegistration, seed *corev1beta1.Seed) string {
	digest := sha256.Sum256([]byte(cmp.Or(string(seed.UID), seed.Name) + "/" + cmp.Or(string(registration.UID), registration.Name)))
	name := registration.Name
	return name[:min(len(name), nameLength)] + "-" + hex.EncodeToString(digest[:])[:nameHashLength]
}

// hashOf returns a digest of the JSON encoding of content.
func hashOf(content any) (string, error) {
	text, err := json.Marshal(content)
	if err != nil {
		return "", fmt.Errorf("encode the inputs of a ControllerInstallation: %w", err)
	}
	digest := sha256.Sum256(text)
	return hex.EncodeToString(digest[:])[:hashLength], nil
}

// with returns a copy of a map that is not nil.
func with(values map[string]string) map[string]string {
	if values == nil {
		return map[string]string{}
	}
	return maps.Clone(values)
}

// setOrDelete sets a value, or deletes the key if the value is empty.
func setOrDelete(values map[string]string, key, value string) {
	if value == "" {
		delete(values, key)
		return
	}
	values[key] = value
}
