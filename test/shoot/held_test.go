package shoot

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/test/kit"
)

// TestLostWhileHeld deletes parts of a Shoot by hand while a version of gardenlet is held outside its maintenance window.
// The parts are created again immediately. The rest remains held, even after a restart. The renewal of a certificate ends
// the hold.
func TestLostWhileHeld(t *testing.T) {
	w := newWorld(t)
	p := newPaced(w)
	toGarden, toSeed, stop := p.start("v1")
	p.declareAll(outside)
	quiet(t, toGarden, toSeed)
	stop()
	toGarden, toSeed, stop = p.start("v2")
	p.says(outside, "the maintenance window is closed")
	quiet(t, toGarden, toSeed)
	before := p.revisions(outside)

	server := p.managedResource(outside, "kube-apiserver")
	kit.Must(t, p.seed.Delete(t.Context(), server))
	kit.Eventually(t, "the deleted ManagedResource is created again", func() string {
		now := &resourcesv1alpha1.ManagedResource{}
		if err := p.seed.Get(t.Context(), client.ObjectKeyFromObject(server), now); err != nil || now.UID == server.UID {
			return fmt.Sprintf("UID %s, %v", now.UID, err)
		}
		return ""
	})
	manifests := p.managedResource(outside, "kube-controller-manager").Spec.SecretRefs
	for _, reference := range manifests {
		kit.Must(t, p.seed.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: server.Namespace, Name: reference.Name}}))
	}
	kit.Eventually(t, "the deleted manifests are replaced", func() string {
		for _, reference := range p.managedResource(outside, "kube-controller-manager").Spec.SecretRefs {
			if err := p.seed.Get(t.Context(), client.ObjectKey{Namespace: server.Namespace, Name: reference.Name}, &corev1.Secret{}); err != nil {
				return err.Error()
			}
		}
		return ""
	})
	quiet(t, toGarden, toSeed)
	stop()
	toGarden, toSeed, stop = p.start("v2")
	kit.EventuallyTrue(t, "the Shoot is watched", func() bool { return toSeed.Watched("/managedresources") && toGarden.Watched("/shoots") })
	quiet(t, toGarden, toSeed)
	if changed := differing(before, p.revisions(outside)); !slices.Equal(changed, []string{"kube-apiserver", "kube-controller-manager"}) {
		t.Errorf("%v were written, want only the lost parts", changed)
	}
	p.says(outside, "the maintenance window is closed")

	var list corev1.SecretList
	kit.Must(t, p.seed.List(t.Context(), &list, client.InNamespace(server.Namespace), client.MatchingLabels{constants.LabelSecretsManagerName: "kube-apiserver"}))
	if len(list.Items) != 1 {
		t.Fatalf("found %d certificates of the API server, want 1", len(list.Items))
	}
	certificate := &list.Items[0]
	kit.Change(t, p.seed, certificate, func() { // it is due for renewal
		certificate.Labels[constants.LabelSecretsManagerValidUntilTime] = certificate.Labels[constants.LabelSecretsManagerIssuedAtTime]
	})
	kit.Eventually(t, "the certificate is renewed, and rolled out together with the held changes", func() string {
		for _, name := range []string{"kube-apiserver", "gardener-resource-manager"} {
			if mr := p.managedResource(outside, name); mr.Annotations[flow.AnnotationVersion] != "v2" {
				return name + " has the version " + mr.Annotations[flow.AnnotationVersion]
			}
		}
		if last := p.shoot(outside).Status.LastOperation.Description; strings.Contains(last, "waits") {
			return last
		}
		return ""
	})
	stop()
}

// managedResource returns a ManagedResource in the namespace of a control plane.
func (p *paced) managedResource(shoot, name string) *resourcesv1alpha1.ManagedResource {
	p.Helper()
	mr := &resourcesv1alpha1.ManagedResource{}
	kit.Must(p, p.seed.Get(context.WithoutCancel(p.Context()), client.ObjectKey{Namespace: "shoot--dev--" + shoot, Name: name}, mr))
	return mr
}

// revisions identifies the revisions of the ManagedResources of a Shoot.
func (p *paced) revisions(shoot string) map[string]string {
	p.Helper()
	var list resourcesv1alpha1.ManagedResourceList
	kit.Must(p, p.seed.List(p.Context(), &list))
	found := map[string]string{}
	for _, mr := range list.Items {
		if owner, _ := flow.ParseOwner(mr.Annotations[flow.AnnotationOwner]); owner.Name == shoot {
			found[mr.Name] = fmt.Sprint(mr.UID, mr.Generation)
		}
	}
	return found
}

// differing returns the keys whose values differ.
func differing(a, b map[string]string) []string {
	keys := maps.Clone(a)
	maps.Copy(keys, b)
	return slices.DeleteFunc(slices.Sorted(maps.Keys(keys)), func(key string) bool { return a[key] == b[key] })
}
