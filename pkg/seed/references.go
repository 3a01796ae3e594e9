package seed

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/credentials"
)

// referencesBundle returns the name of the bundle with copies of the objects in spec.resources.
func (in Inputs) referencesBundle() string { return "referenced-resources-" + in.Seed.Name }

func (in Inputs) withoutReferences() string {
	if len(in.Seed.Spec.Resources) == 0 {
		return "spec.resources is empty"
	}
	return ""
}

// unknownReferences names the objects in spec.resources that do not exist in the garden, empty if all exist.
func (in Inputs) unknownReferences() string {
	var missing []string
	for _, named := range in.Seed.Spec.Resources {
		if _, found := in.References[named.Name]; !found {
			missing = append(missing, fmt.Sprintf("%s %s/%s", named.ResourceRef.Kind, constants.GardenNamespace, named.ResourceRef.Name))
		}
	}
	if len(missing) == 0 {
		return ""
	}
	return "these objects in spec.resources do not exist in the garden: " + strings.Join(missing, ", ")
}

// referenced returns copies of the objects in spec.resources.
func (in Inputs) referenced() ([]client.Object, error) {
	var copies []client.Object
	for _, named := range in.Seed.Spec.Resources {
		of := in.References[named.Name]
		meta := metav1.ObjectMeta{Namespace: in.Namespace, Name: constants.PrefixReference + named.ResourceRef.Name}
		switch {
		case of.Secret != nil:
			copies = append(copies, &corev1.Secret{ObjectMeta: meta, Type: of.Secret.Type, Data: maps.Clone(of.Secret.Data)})
		case of.ConfigMap != nil:
			copies = append(copies, &corev1.ConfigMap{ObjectMeta: meta, Data: of.ConfigMap.Data, BinaryData: of.ConfigMap.BinaryData})
		case of.WorkloadIdentity != nil:
			key := client.ObjectKey{Namespace: in.Namespace, Name: constants.PrefixWorkloadIdentityReference + named.ResourceRef.Name}
			secret, err := credentials.ForWorkloadIdentity(key, of.WorkloadIdentity, in.context())
			if err != nil {
				return nil, fmt.Errorf("spec.resources, %s: %w", named.Name, err)
			}
			copies = append(copies, secret)
		default:
			return nil, fmt.Errorf("spec.resources, %s: a %s cannot be copied, only Secrets, ConfigMaps and WorkloadIdentities",
				named.Name, named.ResourceRef.Kind)
		}
	}
	return copies, nil
}

// context describes the object for which tokens of WorkloadIdentities are issued: the Seed.
func (in Inputs) context() json.RawMessage {
	text, err := json.Marshal(map[string]string{
		"apiVersion": corev1beta1.SchemeGroupVersion.String(), "kind": "Seed", "name": in.Seed.Name, "uid": string(in.Seed.UID),
	})
	if err != nil {
		return nil // a map of strings can always be encoded
	}
	return text
}
