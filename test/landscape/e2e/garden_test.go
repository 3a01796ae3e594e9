package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	operatorv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/test/landscape/fleet"
)

// TestGarden installs the operator with its chart and a Garden on the base cluster, as an operator of a fleet would: the control plane of
// the virtual garden and the programs of the garden run in real containers. A Project gets its namespace. Then the Garden is deleted, which is
// refused without a confirmation, and nothing but what the documentation names is left.
func TestGarden(t *testing.T) {
	needsLandscape(t)
	c := on(t, base)
	f, err := fleet.New(base, t.Logf)
	must(t, err)
	must(t, f.UpGarden(c.ctx))
	began := time.Now()
	must(t, f.UpGarden(c.ctx))
	t.Logf("Second call of UpGarden without changes: %s", time.Since(began).Round(time.Second))

	inside, err := f.VirtualGarden(c.ctx)
	must(t, err)
	c.project(inside)
	if !t.Run("seed", func(t *testing.T) { c.in(t).seedOfVirtualGarden(f) }) {
		t.FailNow() // the Garden cannot be deleted while it has a Seed
	}

	garden := &operatorv1alpha1.Garden{ObjectMeta: metav1.ObjectMeta{Name: fleet.GardenName}}
	if err := c.Delete(c.ctx, garden); err == nil {
		t.Error("the Garden can be deleted without a confirmation")
	}
	must(t, f.DeleteConfirmed(c.ctx, garden))
	c.nothingOfGardenIsLeft(f)
	must(t, f.UninstallOperator(c.ctx))
}

// project creates a Project in the virtual garden, waits until the controller-manager has created its namespace, and deletes it.
func (c *cluster) project(virtual client.Client) {
	c.t.Helper()
	project := &corev1beta1.Project{ObjectMeta: metav1.ObjectMeta{Name: "dev"}}
	must(c.t, virtual.Create(c.ctx, project))
	began := time.Now()
	c.eventually("the Project has a namespace", func() error {
		if err := virtual.Get(c.ctx, client.ObjectKeyFromObject(project), project); err != nil {
			return err
		}
		if project.Status.Phase != corev1beta1.ProjectReady || project.Spec.Namespace == nil {
			return fmt.Errorf("its phase is %q", project.Status.Phase)
		}
		return virtual.Get(c.ctx, client.ObjectKey{Name: *project.Spec.Namespace}, &corev1.Namespace{})
	})
	c.t.Logf("The Project is ready after %s", time.Since(began).Round(time.Millisecond))
	if err := virtual.Delete(c.ctx, project); !apierrors.IsForbidden(err) {
		c.t.Errorf("a deletion of the Project without a confirmation is answered with %v", err)
	}
	before := client.MergeFrom(project.DeepCopy())
	metav1.SetMetaDataAnnotation(&project.ObjectMeta, constants.AnnotationConfirmationDeletion, "true")
	must(c.t, virtual.Patch(c.ctx, project, before))
	must(c.t, virtual.Delete(c.ctx, project))
	c.eventually("the Project is gone", func() error {
		err := virtual.Get(c.ctx, client.ObjectKeyFromObject(project), project)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, fmt.Errorf("it still exists in the phase %q", project.Status.Phase))
	})
}

// nothingOfGardenIsLeft checks that the namespace of the garden has no Pods but those of the operator, no ManagedResources, and no Secrets with
// keys.
func (c *cluster) nothingOfGardenIsLeft(f *fleet.Fleet) {
	c.t.Helper()
	c.eventually("nothing of the Garden is left", func() error {
		managed, pods, secrets := &resourcesv1alpha1.ManagedResourceList{}, &corev1.PodList{}, &corev1.SecretList{}
		inGarden := client.InNamespace(constants.GardenNamespace)
		if err := errors.Join(f.List(c.ctx, managed), f.List(c.ctx, pods, inGarden), f.List(c.ctx, secrets, inGarden)); err != nil {
			return err
		}
		if len(managed.Items) > 0 {
			return fmt.Errorf("%d ManagedResources, such as %s", len(managed.Items), managed.Items[0].Name)
		}
		for _, pod := range pods.Items {
			if pod.Labels["app"] != "gardener" || pod.Labels["role"] != "operator" {
				return fmt.Errorf("the Pod %s, %v", pod.Name, pod.Labels)
			}
		}
		for _, secret := range secrets.Items {
			if !strings.HasPrefix(secret.Name, "gardener-operator") && secret.Type != "helm.sh/release.v1" {
				return fmt.Errorf("the Secret %s", secret.Name)
			}
		}
		return nil
	})
}
