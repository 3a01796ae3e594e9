package shoot

import (
	"context"
	"encoding/json"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/webhooks/highavailability"
)

// note counts a state of a ManagedResource. It returns whether a response is due, and whether the response reports that
// everything is healthy.
func (p *paced) note(mr *resourcesv1alpha1.ManagedResource) (healthy, due bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := types.NamespacedName{Namespace: mr.Namespace, Name: mr.Name}
	p.mrs[key] = mr
	rolling := 0
	for _, each := range p.mrs {
		rolling += flow.FleetOf([]resourcesv1alpha1.ManagedResource{*each}, p.version).Rolling
	}
	p.most = max(p.most, rolling)
	if mr.Status.ObservedGeneration == mr.Generation {
		return false, false
	}
	owner, _ := flow.ParseOwner(mr.Annotations[flow.AnnotationOwner])
	return p.judge(owner.Name), true
}

// answer simulates the resource-manager with a delay. It also creates the namespace of a control plane and the tokens of
// its programs.
func (p *paced) answer(ctx context.Context, mr *resourcesv1alpha1.ManagedResource, good bool) error {
	select {
	case <-ctx.Done():
	case <-time.After(rollsFor):
	}
	if mr.Namespace == constants.GardenNamespace {
		if err := p.bringNamespace(ctx, mr.Name); err != nil {
			return err
		}
	}
	healthy := resourcesv1alpha1.ConditionTrue
	if !good {
		healthy = resourcesv1alpha1.ConditionFalse
	}
	condition := func(kind resourcesv1alpha1.ConditionType, status resourcesv1alpha1.ConditionStatus) resourcesv1alpha1.Condition {
		return resourcesv1alpha1.Condition{
			Type: kind, Status: status, Reason: "StandIn", Message: "the stand-in says so", LastTransitionTime: metav1.Now(), LastUpdateTime: metav1.Now(),
		}
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{
		"observedGeneration": mr.Generation,
		"conditions": []resourcesv1alpha1.Condition{
			condition(resourcesv1alpha1.ResourcesApplied, resourcesv1alpha1.ConditionTrue),
			condition(resourcesv1alpha1.ResourcesHealthy, healthy),
			condition(resourcesv1alpha1.ResourcesProgressing, resourcesv1alpha1.ConditionFalse),
		},
	}})
	if err != nil {
		return err
	}
	return client.IgnoreNotFound(p.seed.Status().Patch(ctx, mr.DeepCopy(), client.RawPatch(types.MergePatchType, patch)))
}

// bringNamespace creates the namespace of a control plane and the Secrets with tokens of its programs.
func (p *paced) bringNamespace(ctx context.Context, name string) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{constants.LabelGardenRole: constants.RoleShoot}}}
	namespace.Annotations = map[string]string{highavailability.AnnotationFailureTolerance: ""}
	objects := []client.Object{namespace}
	for _, account := range []string{"gardener-resource-manager", "kube-controller-manager"} {
		objects = append(objects, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Namespace: name, Name: constants.PrefixShootAccess + account, Labels: map[string]string{resourcesv1alpha1.LabelClass: resourcesv1alpha1.ClassShoot},
			Annotations: map[string]string{resourcesv1alpha1.AnnotationTokenRenewTimestamp: time.Now().Add(12 * time.Hour).UTC().Format(time.RFC3339)},
		}})
	}
	for _, object := range objects {
		if err := p.seed.Create(ctx, object); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return nil
}
