package faults

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/secrets"
	"github.com/trellis-k8s/trellis/test/kit"
)

// bundles are the ManagedResources of a control plane. The last one does not exist while the Shoot hibernates.
var bundles = []string{
	"etcd-events", "etcd-main", "gardener-resource-manager", "kube-apiserver", "kube-apiserver-service", "kube-controller-manager", "shoot-access",
	"shoot-core-cluster-identity", "shoot-core-gardener-resource-manager", "shoot-core-gardeneraccess", "shoot-core-kube-controller-manager",
	"shoot-core-namespaces", "shoot-core-system", bundleScaling,
}

const bundleScaling = "kube-apiserver-scaling"

// unfinished returns the objections to the result of an operation: lost ManagedResources, changed keys, and data
// that was not saved.
func (s *shootLife) unfinished(asleep bool) []string {
	s.Helper()
	shoot := s.shoot()
	last := shoot.Status.LastOperation
	if last == nil || last.State != corev1beta1.LastOperationStateSucceeded || shoot.Status.ObservedGeneration != shoot.Generation || shoot.Status.IsHibernated != asleep {
		return []string{fmt.Sprintf("last operation %+v at %d of %d, errors %+v", last, shoot.Status.ObservedGeneration, shoot.Generation, shoot.Status.LastErrors)}
	}
	objections := slices.Concat(s.missing(asleep), s.changedKeys(), s.unsaved())
	for _, condition := range shoot.Status.Conditions {
		if condition.Status != corev1beta1.ConditionTrue {
			objections = append(objections, fmt.Sprintf("%s is %s: %s", condition.Type, condition.Status, condition.Message))
		}
	}
	if len(shoot.Status.Conditions) == 0 {
		objections = append(objections, "no conditions found")
	}
	return objections
}

// missing returns the ManagedResources that do not exist or are not settled, and those that should not exist.
func (s *shootLife) missing(asleep bool) []string {
	s.Helper()
	var objections []string
	wanted := map[string]bool{s.technical: true}
	for _, name := range bundles {
		wanted[name] = name != bundleScaling || !asleep
	}
	for _, mr := range s.managedResources() {
		if !wanted[mr.Name] || mr.DeletionTimestamp != nil || mr.Status.ObservedGeneration != mr.Generation {
			objections = append(objections, "ManagedResource "+mr.Name+" is unwanted or not settled")
		}
		wanted[mr.Name] = false
	}
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		if wanted[name] {
			objections = append(objections, "ManagedResource "+name+" does not exist")
		}
	}
	return objections
}

// generated returns the Secrets that gardenlet has generated for the control plane.
func (s *shootLife) generated() []corev1.Secret {
	s.Helper()
	var list corev1.SecretList
	s.list(s.client, &list, client.InNamespace(s.technical), client.HasLabels{constants.LabelSecretsManagerName})
	return list.Items
}

// changedKeys returns the Secrets of the control plane that have changed since its creation. The first call
// records them.
func (s *shootLife) changedKeys() []string {
	s.Helper()
	present := map[string]map[string][]byte{}
	for _, secret := range s.generated() {
		present[secret.Name] = secret.Data
	}
	if s.keys == nil {
		s.keys = present
	}
	var objections []string
	for name, data := range s.keys {
		if !equality.Semantic.DeepEqual(present[name], data) {
			objections = append(objections, "Secret "+name+" was generated again or is lost")
		}
	}
	return objections
}

// unsaved returns the Secrets that are missing from the ShootState or the garden, or that differ there.
func (s *shootLife) unsaved() []string {
	s.Helper()
	state := &corev1beta1.ShootState{}
	if err := s.garden.Get(s.always(), client.ObjectKey{Namespace: s.projectNamespace, Name: shootName}, state); err != nil {
		return []string{err.Error()}
	}
	saved, err := secrets.Saved(state.Spec.Gardener)
	kit.Must(s, err)
	stored := map[string]map[string][]byte{}
	for _, secret := range saved {
		stored[secret.Name] = secret.Data
	}
	var objections []string
	var authority []byte
	for _, secret := range s.generated() {
		if secret.Labels[constants.LabelSecretsManagerPersist] == "true" && !equality.Semantic.DeepEqual(stored[secret.Name], secret.Data) {
			objections = append(objections, "the ShootState lacks Secret "+secret.Name)
		}
		if secret.Labels[constants.LabelSecretsManagerName] == constants.SecretNameCAClient && secret.Labels[constants.LabelSecretsManagerBundleFor] == "" {
			authority = secret.Data[secrets.KeyCACert]
		}
	}
	published := &corev1beta1.InternalSecret{}
	err = s.garden.Get(s.always(), client.ObjectKey{Namespace: s.projectNamespace, Name: shootName + constants.SuffixCAClient}, published)
	if err != nil || string(published.Data[constants.KeyCACert]) != string(authority) {
		objections = append(objections, fmt.Sprintf("the garden lacks the client CA or has another one: %v", err))
	}
	return objections
}

// left returns the remains of a deleted Shoot.
func (s *shootLife) left() []string {
	s.Helper()
	if shoot := s.shoot(); shoot != nil {
		return []string{fmt.Sprintf("the Shoot exists: %+v %+v", shoot.Status.LastOperation, shoot.Status.LastErrors)}
	}
	var objections []string
	for _, mr := range s.managedResources() {
		objections = append(objections, "ManagedResource "+mr.Name+" still exists")
	}
	var manifests corev1.SecretList
	s.list(s.client, &manifests, client.InNamespace(s.namespace))
	manifests.Items = slices.DeleteFunc(manifests.Items, func(secret corev1.Secret) bool { return secret.Name == "shoot-records" }) // stays with the Seed
	for _, secret := range slices.Concat(manifests.Items, s.generated()) {
		objections = append(objections, "Secret "+secret.Name+" still exists")
	}
	if s.found(s.client, client.ObjectKey{Name: s.technical}, &corev1.Namespace{}) {
		objections = append(objections, "the namespace of the control plane still exists")
	}
	if s.found(s.garden, client.ObjectKey{Namespace: s.projectNamespace, Name: shootName}, &corev1beta1.ShootState{}) {
		objections = append(objections, "the ShootState still exists")
	}
	return objections
}

// picture describes the existing objects, without details that differ between runs. If the response to the last
// write of a creation is lost, or a later call fails, the next operation might or might not be the creation.
func (s *shootLife) picture() []string {
	s.Helper()
	var lines []string
	for _, mr := range s.managedResources() {
		lines = append(lines, strings.ReplaceAll(fmt.Sprint("ManagedResource ", mr.Name, " class ", ptr.Deref(mr.Spec.Class, ""), " kept ", ptr.Deref(mr.Spec.KeepObjects, false),
			" Secrets ", len(mr.Spec.SecretRefs), " needs ", mr.Spec.DependsOn), s.technical, shootNamespace))
	}
	for _, secret := range s.generated() {
		lines = append(lines, "Secret "+withoutDigits(secret.Name))
	}
	if shoot := s.shoot(); shoot != nil {
		lines = append(lines, fmt.Sprint("Shoot hibernates ", shoot.Status.IsHibernated, " errors ", len(shoot.Status.LastErrors)))
	}
	slices.Sort(lines)
	return lines
}

// attest checks each write before it is executed: a crash can follow directly.
func (s *shootLife) attest(c call, body []byte) {
	managed, ofControlPlane := c.by == "" && c.resource == "managedresources", c.by == "" && c.namespace == s.technical
	switch {
	case managed && c.verb == "patch" && c.subresource == "":
		s.attestBundle(c, body)
	case managed && c.verb == "delete" && !s.deleting.Load() && c.name != bundleScaling:
		s.violate("%s deletes a wanted object", c)
	case ofControlPlane && c.resource == "secrets" && c.verb == "create":
		s.attestSecret(c, body)
	case ofControlPlane && c.resource == "secrets" && c.verb == "delete" && !s.deleting.Load():
		s.attestUnused(c)
	case c.by == "garden" && c.resource == "shoots" && c.verb == "patch" && c.subresource == "" && s.deleting.Load() && strings.Contains(string(body), `"finalizers"`):
		for _, mr := range s.managedResources() {
			s.violate("the finalizer of the Shoot is removed while ManagedResource %s exists", mr.Name)
		}
	}
}

// attestBundle checks that a ManagedResource refers to existing Secrets.
func (s *shootLife) attestBundle(c call, body []byte) {
	var mr resourcesv1alpha1.ManagedResource
	if err := json.Unmarshal(body, &mr); err != nil {
		s.violate("%s: %v", c, err)
	}
	for _, reference := range mr.Spec.SecretRefs {
		if err := s.client.Get(s.always(), client.ObjectKey{Namespace: c.namespace, Name: reference.Name}, &corev1.Secret{}); err != nil {
			s.violate("ManagedResource %s would refer to an unreadable Secret: %v", c.name, err)
		}
	}
}

// attestSecret checks that no existing Secret is generated again.
func (s *shootLife) attestSecret(c call, body []byte) {
	object, _, err := clientgoscheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	secret, is := object.(*corev1.Secret)
	if err != nil || !is {
		s.violate("%s has no Secret: %v", c, err)
		return
	}
	name := secret.Labels[constants.LabelSecretsManagerName]
	if name == "" {
		return
	}
	for _, present := range s.generated() {
		same := present.Labels[constants.LabelSecretsManagerName] == name &&
			present.Labels[constants.LabelSecretsManagerBundleFor] == secret.Labels[constants.LabelSecretsManagerBundleFor]
		if same && present.Name != secret.Name { // one with the same name is not overwritten
			s.violate("%s generates %s again, although it exists as %s", c, secret.Name, present.Name)
		}
	}
}

// attestUnused checks that no Secret of the control plane since its creation is deleted.
func (s *shootLife) attestUnused(c call) {
	for _, secret := range s.generated() {
		if secret.Name == c.name {
			s.violate("%s deletes a Secret that was generated for the control plane", c)
		}
	}
}
