package shoot

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	securityv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/security/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow/table"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/credentials"
)

// bundleReferenced is the bundle with copies of the objects in spec.resources.
const bundleReferenced = "referenced-resources"

// Kinds of objects to which a Shoot can refer.
const (
	kindSecret           = "Secret"
	kindConfigMap        = "ConfigMap"
	kindWorkloadIdentity = "WorkloadIdentity"
)

// reference is a reference to an object of the garden.
type reference struct{ kind, namespace, name string }

func (r reference) String() string { return r.kind + " " + r.namespace + "/" + r.name }

// Referenced is an object of the garden. One of the first three fields is set, unless it is of another kind.
type Referenced struct {
	Secret           *corev1.Secret
	ConfigMap        *corev1.ConfigMap
	WorkloadIdentity *securityv1alpha1.WorkloadIdentity
	// Unreadable is the reason why it cannot be read, or empty.
	Unreadable string
}

// references returns the references in spec.resources, in their order.
func (in Inputs) references() []reference {
	var named []reference
	for _, each := range in.Shoot.Spec.Resources {
		named = append(named, reference{each.ResourceRef.Kind, in.Shoot.Namespace, each.ResourceRef.Name})
	}
	return named
}

// referencedParts returns the part with copies of the objects in spec.resources.
func (in Inputs) referencedParts() []table.Part {
	return []table.Part{{
		Name: bundleReferenced, Objects: in.referenced, Absent: in.withoutResources(), Removed: true,
		Unknown: in.unknownReferences("of spec.resources", in.references()...), DeletedAfter: in.allExtensionBundles(),
	}}
}

// withoutResources returns why the Shoot has no copies of referenced objects, empty if it has.
func (in Inputs) withoutResources() string {
	if len(in.Shoot.Spec.Resources) == 0 {
		return "spec.resources is empty"
	}
	return ""
}

// unknownReferences names the objects of the garden that are missing or cannot be read.
func (in Inputs) unknownReferences(what string, named ...reference) string {
	var missing []string
	for _, each := range named {
		switch found, exists := in.References[each.String()]; {
		case !exists:
			missing = append(missing, each.String()+" does not exist")
		case found.Unreadable != "":
			missing = append(missing, found.Unreadable)
		}
	}
	if len(missing) == 0 {
		return ""
	}
	return "objects of the garden " + what + " are missing: " + strings.Join(missing, ", ")
}

// referenced returns copies of the objects in spec.resources. Several entries may refer to the same object.
func (in Inputs) referenced() ([]client.Object, error) {
	var copies []client.Object
	named := in.references()
	slices.SortFunc(named, func(a, b reference) int { return cmp.Compare(a.String(), b.String()) })
	for _, each := range slices.Compact(named) {
		made, err := in.copyOf(each)
		if err != nil {
			return nil, fmt.Errorf("spec.resources: %w", err)
		}
		copies = append(copies, made)
	}
	return copies, nil
}

// copyOf returns a copy of a referenced object for the namespace of the control plane.
func (in Inputs) copyOf(named reference) (client.Object, error) {
	found := in.References[named.String()]
	meta := metav1.ObjectMeta{Namespace: in.Namespace, Name: constants.PrefixReference + named.name}
	switch {
	case found.Secret != nil:
		return &corev1.Secret{ObjectMeta: meta, Type: found.Secret.Type, Data: found.Secret.Data}, nil
	case found.ConfigMap != nil:
		return &corev1.ConfigMap{ObjectMeta: meta, Data: found.ConfigMap.Data, BinaryData: found.ConfigMap.BinaryData}, nil
	case found.WorkloadIdentity != nil:
		key := client.ObjectKey{Namespace: in.Namespace, Name: constants.PrefixWorkloadIdentityReference + named.name}
		return in.forWorkloadIdentity(found.WorkloadIdentity, key)
	}
	return nil, fmt.Errorf("%s cannot be copied: only Secrets, ConfigMaps and WorkloadIdentities are supported", named)
}

// credentialsFor returns a Secret for the namespace of the control plane with credentials of the garden, and a digest of the credentials.
func (in Inputs) credentialsFor(named reference, key client.ObjectKey) (*corev1.Secret, string, error) {
	found := in.References[named.String()]
	switch {
	case found.Secret != nil:
		return credentials.Copy(key, found.Secret), credentials.Digest(found.Secret.Data), nil
	case found.WorkloadIdentity != nil:
		secret, err := in.forWorkloadIdentity(found.WorkloadIdentity, key)
		if err != nil {
			return nil, "", err
		}
		return secret, credentials.Digest(secret.Data, found.WorkloadIdentity.UID), nil
	}
	return nil, "", fmt.Errorf("%s cannot be used as credentials: only Secrets and WorkloadIdentities are supported", named)
}

// forWorkloadIdentity returns a Secret for tokens of a WorkloadIdentity with the Shoot as context.
func (in Inputs) forWorkloadIdentity(of *securityv1alpha1.WorkloadIdentity, key client.ObjectKey) (*corev1.Secret, error) {
	context, err := json.Marshal(map[string]string{
		"apiVersion": corev1beta1.SchemeGroupVersion.String(), "kind": "Shoot",
		"namespace": in.Shoot.Namespace, "name": in.Shoot.Name, "uid": string(in.Owner.UID),
	})
	if err != nil {
		return nil, fmt.Errorf("encode the Shoot for WorkloadIdentity %s: %w", of.Name, err)
	}
	return credentials.ForWorkloadIdentity(key, of, context)
}
