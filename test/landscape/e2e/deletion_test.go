package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/provider/local/example"
	"github.com/trellis-k8s/trellis/test/landscape/fleet"
)

// missingVersion is a version of Kubernetes that the CloudProfile offers and whose images do not exist.
const missingVersion = "1.36.99"

// deletion is the deletion of a Shoot in a state that makes it difficult.
type deletion struct {
	name  string
	state func(*cluster, *fleet.Fleet, client.ObjectKey)
	force bool
}

// deletions are the deletions of such Shoots. Each is deleted as its users delete it, or by force.
var deletions = []deletion{
	{"never-up", (*cluster).neverUp, false},
	{"never-up-forced", (*cluster).neverUp, true},
	{"asleep", (*cluster).asleep, false},
	{"asleep-forced", (*cluster).asleep, true},
	{"unmanaged-forced", (*cluster).unmanaged, true},
}

// TestShootDeletions deletes Shoots in real containers whose API server never started, which are hibernated, or whose
// resource-manager is stopped, with extensions of both clusters. Each deletion ends, and nothing of the Shoots is left.
func TestShootDeletions(t *testing.T) {
	if !*updates {
		t.Skip("takes minutes: -landscape.updates")
	}
	c, f := onFleet(t)
	c.reduceRequests()
	must(t, f.Up(c.ctx))
	c.offer(f, missingVersion)
	for _, deletion := range deletions {
		t.Run(deletion.name, func(t *testing.T) { c.in(t).delete(f, deletion) })
	}
}

// delete creates a Shoot, brings it to a state, and deletes it.
func (c *cluster) delete(f *fleet.Fleet, d deletion) {
	c.t.Helper()
	key := client.ObjectKey{Namespace: shootOfFleet.Namespace, Name: d.name}
	d.state(c, f, key)
	c.deleteShoot(f, key, d.force)
}

// offer adds a version of Kubernetes to the CloudProfile, unless it has it.
func (c *cluster) offer(f *fleet.Fleet, version string) {
	c.t.Helper()
	profile := &corev1beta1.CloudProfile{}
	must(c.t, f.Get(c.ctx, client.ObjectKey{Name: "local"}, profile))
	if slices.ContainsFunc(profile.Spec.Kubernetes.Versions, func(one corev1beta1.ExpirableVersion) bool { return one.Version == version }) {
		return
	}
	before := client.MergeFrom(profile.DeepCopy())
	profile.Spec.Kubernetes.Versions = append(profile.Spec.Kubernetes.Versions, corev1beta1.ExpirableVersion{Version: version})
	must(c.t, f.Patch(c.ctx, profile, before))
}

// neverUp creates a Shoot whose API server cannot start, and waits until its Pods wait for their image.
func (c *cluster) neverUp(f *fleet.Fleet, key client.ObjectKey) {
	c.t.Helper()
	must(c.t, f.CreateShoot(c.ctx, key, missingVersion))
	c.within(fleetTimeout, "the API server waits for its image", func() error {
		shoot, pods := &corev1beta1.Shoot{}, &corev1.PodList{}
		if err := f.Get(c.ctx, key, shoot); err != nil {
			return err
		}
		if shoot.Status.TechnicalID == "" {
			return errors.New("the Shoot has no namespace yet")
		}
		if err := c.List(c.ctx, pods, client.InNamespace(shoot.Status.TechnicalID), client.MatchingLabels{"app": "kubernetes", "role": "apiserver"}); err != nil {
			return err
		}
		for _, pod := range pods.Items {
			for _, status := range pod.Status.ContainerStatuses {
				if status.State.Waiting != nil && slices.Contains([]string{"ErrImagePull", "ImagePullBackOff"}, status.State.Waiting.Reason) {
					return nil
				}
			}
		}
		return fmt.Errorf("%d Pods, none of them waits for its image: %+v", len(pods.Items), shoot.Status.LastOperation)
	})
}

// asleep creates a Shoot and hibernates it.
func (c *cluster) asleep(f *fleet.Fleet, key client.ObjectKey) {
	c.t.Helper()
	c.ready(f, key)
	must(c.t, f.Patch(c.ctx, &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}},
		client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"hibernation":{"enabled":true}}}`))))
	c.within(fleetTimeout, "the Shoot is hibernated", func() error {
		shoot := &corev1beta1.Shoot{}
		if err := f.Get(c.ctx, key, shoot); err != nil {
			return err
		}
		if !shoot.Status.IsHibernated {
			return fmt.Errorf("it is not hibernated: %+v", shoot.Status.LastOperation)
		}
		return f.ShootIsReady(c.ctx, key)
	})
}

// unmanaged creates a Shoot and stops its resource-manager as docs/seed.md says, so that no object in the Shoot can be deleted.
func (c *cluster) unmanaged(f *fleet.Fleet, key client.ObjectKey) {
	c.t.Helper()
	c.ready(f, key)
	shoot := &corev1beta1.Shoot{}
	must(c.t, f.Get(c.ctx, key, shoot))
	name := metav1.ObjectMeta{Namespace: shoot.Status.TechnicalID, Name: resourceManager}
	must(c.t, c.Patch(c.ctx, &resourcesv1alpha1.ManagedResource{ObjectMeta: name}, client.RawPatch("application/merge-patch+json",
		fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"true"}}}`, resourcesv1alpha1.AnnotationIgnore))))
	manager := &appsv1.Deployment{ObjectMeta: name}
	c.eventually("the resource-manager of the Shoot is stopped", func() error {
		// The resource-manager of the seed may be correcting the Deployment when it reads the annotation.
		if err := c.Patch(c.ctx, manager, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"replicas":0}}`))); err != nil {
			return err
		}
		if manager.Status.Replicas != 0 || *manager.Spec.Replicas != 0 {
			return fmt.Errorf("%d Pods of %d still run", manager.Status.Replicas, *manager.Spec.Replicas)
		}
		return nil
	})
}

// ready creates a Shoot, and waits until it is ready.
func (c *cluster) ready(f *fleet.Fleet, key client.ObjectKey) {
	c.t.Helper()
	_, err := f.CreateShoots(c.ctx, key)
	must(c.t, err)
}

// deleteShoot deletes a Shoot, and checks that nothing of it is left.
func (c *cluster) deleteShoot(f *fleet.Fleet, key client.ObjectKey, force bool) {
	c.t.Helper()
	shoot := &corev1beta1.Shoot{}
	must(c.t, f.Get(c.ctx, key, shoot))
	began := time.Now()
	if force {
		c.reportError(f, shoot)
	}
	deleted := make(chan error, 1)
	go func() { deleted <- f.DeleteConfirmed(c.ctx, shoot.DeepCopy()) }()
	if force {
		c.force(f, key)
	}
	must(c.t, <-deleted)
	c.t.Logf("%s: deleted after %s", key.Name, time.Since(began).Round(100*time.Millisecond))
	c.nothingOfShootIsLeft(f, shoot)
}

// reportError reports an error with a code as an extension does, until the Shoot has it: the API server allows a forced deletion only for
// these errors.
func (c *cluster) reportError(f *fleet.Fleet, shoot *corev1beta1.Shoot) {
	c.t.Helper()
	operations := 0
	c.eventually("the Shoot reports the error", func() error {
		if shoot.Status.LastOperation.State == corev1beta1.LastOperationStateSucceeded && shoot.Status.ObservedGeneration == shoot.Generation {
			// An error after an operation is a condition. It is an error of the next operation, unless that ends before the error is set: the
			// operation of a Shoot that hibernates takes less than a second.
			operations++
			must(c.t, f.Patch(c.ctx, shoot, client.RawPatch("application/merge-patch+json",
				fmt.Appendf(nil, `{"spec":{"kubernetes":{"kubeAPIServer":{"eventTTL":"%dm"}}}}`, 90+operations))))
		}
		c.failExtension(shoot.Status.TechnicalID)
		if err := f.Get(c.ctx, client.ObjectKeyFromObject(shoot), shoot); err != nil {
			return err
		}
		for _, one := range shoot.Status.LastErrors {
			if slices.Contains(one.Codes, corev1beta1.ErrorInfraUnauthorized) {
				return nil
			}
		}
		return fmt.Errorf("the last operation is %+v, and the last errors are %+v", shoot.Status.LastOperation, shoot.Status.LastErrors)
	})
}

// failExtension sets the error in the status of an extension, unless it has one. provider-local removes it when it reconciles the extension,
// as in each operation of the Shoot.
func (c *cluster) failExtension(namespace string) {
	c.t.Helper()
	extension := &extensionsv1alpha1.Extension{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: example.TypeSeed}}
	must(c.t, c.Get(c.ctx, client.ObjectKeyFromObject(extension), extension))
	if extension.Status.LastError != nil {
		return
	}
	before, now := client.MergeFrom(extension.DeepCopy()), metav1.Now()
	extension.Status.LastError = &corev1beta1.LastError{
		Description: "the account is locked", Codes: []corev1beta1.ErrorCode{corev1beta1.ErrorInfraUnauthorized}, LastUpdateTime: &now,
	}
	extension.Status.LastOperation = &corev1beta1.LastOperation{
		Type: corev1beta1.LastOperationTypeReconcile, State: corev1beta1.LastOperationStateError, Description: "the account is locked", LastUpdateTime: now,
	}
	must(c.t, c.Status().Patch(c.ctx, extension, before))
}

// force requests a forced deletion as soon as the API server allows it.
func (c *cluster) force(f *fleet.Fleet, key client.ObjectKey) {
	c.t.Helper()
	patch := client.RawPatch("application/merge-patch+json",
		fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"true"}}}`, constants.AnnotationConfirmationForceDeletion))
	c.eventually("the deletion is forced", func() error {
		err := f.Patch(c.ctx, &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}, patch)
		if apierrors.IsNotFound(err) {
			c.t.Errorf("the Shoot %s is deleted before its deletion could be forced", key)
			return nil
		}
		return err
	})
}

// errorsOfOthers reports, at most once for each Shoot and description, each state Error of Shoots until the context ends.
func (c *cluster) errorsOfOthers(ctx context.Context, f *fleet.Fleet) map[string]int {
	seen, latest := map[string]int{}, map[string]string{}
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return seen
		case <-tick.C:
		}
		shoots := &corev1beta1.ShootList{}
		if err := f.List(ctx, shoots, client.InNamespace(shootOfFleet.Namespace)); err != nil {
			if ctx.Err() == nil {
				c.t.Logf("list the Shoots: %v", err)
			}
			continue // the next one shows what has happened
		}
		for _, shoot := range shoots.Items {
			last := shoot.Status.LastOperation
			failed := last != nil && (last.State == corev1beta1.LastOperationStateError || last.State == corev1beta1.LastOperationStateFailed)
			text := ""
			if failed {
				text = shoot.Name + ": " + last.Description
			}
			if failed && latest[shoot.Name] != text {
				seen[text]++
			}
			latest[shoot.Name] = text
		}
	}
}
