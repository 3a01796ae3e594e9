package managedseedset

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/seedmanagement/v1alpha1"
)

// placeholder stands for the name of the replica in the domains of the templates.
const placeholder = "replica-name"

// newShoot returns the Shoot of a replica.
func newShoot(set *v1alpha1.ManagedSeedSet, name string) *gardencorev1beta1.Shoot {
	template := set.Spec.ShootTemplate.DeepCopy()
	shoot := &gardencorev1beta1.Shoot{ObjectMeta: metaOf(set, name, &template.Metadata), Spec: template.Spec}
	if dns := shoot.Spec.DNS; dns != nil && dns.Domain != nil {
		domain := strings.ReplaceAll(*dns.Domain, placeholder, name)
		dns.Domain = &domain
	}
	return shoot
}

// newManagedSeed returns the ManagedSeed of a replica. It fails if the configuration of the gardenlet is not a JSON object.
func newManagedSeed(set *v1alpha1.ManagedSeedSet, name string) (*v1alpha1.ManagedSeed, error) {
	template := set.Spec.Template.DeepCopy()
	managed := &v1alpha1.ManagedSeed{ObjectMeta: metaOf(set, name, &template.Metadata), Spec: template.Spec}
	managed.Spec.Shoot = &v1alpha1.Shoot{Name: name}
	raw := managed.Spec.Gardenlet.Config.Raw
	if len(raw) == 0 {
		return managed, nil
	}
	config := map[string]any{}
	if err := json.Unmarshal(raw, &config); err != nil {
		return nil, fmt.Errorf("read spec.template.spec.gardenlet.config of ManagedSeedSet %s/%s: %w", set.Namespace, set.Name, err)
	}
	path := []string{"seedConfig", "spec", "ingress", "domain"}
	domain, found, err := unstructured.NestedString(config, path...)
	if err == nil && found {
		err = unstructured.SetNestedField(config, strings.ReplaceAll(domain, placeholder, name), path...)
	}
	if err != nil {
		return nil, fmt.Errorf("read the domain in spec.template.spec.gardenlet.config of ManagedSeedSet %s/%s: %w", set.Namespace, set.Name, err)
	}
	if managed.Spec.Gardenlet.Config.Raw, err = json.Marshal(config); err != nil {
		return nil, fmt.Errorf("encode the configuration of ManagedSeed %s: %w", name, err)
	}
	return managed, nil
}

// metaOf returns the metadata of an object of a replica. The set owns it.
func metaOf(set *v1alpha1.ManagedSeedSet, name string, template *metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: set.Namespace, Name: name, Labels: maps.Clone(template.Labels), Annotations: maps.Clone(template.Annotations),
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, v1alpha1.SchemeGroupVersion.WithKind("ManagedSeedSet"))},
	}
}
