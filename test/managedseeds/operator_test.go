package managedseeds

import (
	"os"
	"path/filepath"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	operatorv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apis/operatorconfig/v1alpha1"
	seedmanagementv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/seedmanagement/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/operator/controller"
	"github.com/trellis-k8s/trellis/pkg/operator/controller/gardenlet"
	"github.com/trellis-k8s/trellis/pkg/operator/schemes"
	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/kit"
)

// operates runs the operator's controller of Gardenlets. The garden is also its runtime cluster.
func (f *fixture) operates(charts *registry) (runtimeCluster client.Client, stop func()) {
	f.Helper()
	root, err := controlplane.RepositoryRoot()
	kit.Must(f, err)
	_, err = envtest.InstallCRDs(f.plane.Config(), envtest.CRDInstallOptions{
		Paths: []string{filepath.Join(root, "config", "crd", "operator")}, ErrorIfPathMissing: true, MaxTime: kit.WaitTimeout,
	})
	kit.Must(f, err)
	scheme := schemes.Runtime()
	mgr, err := manager.New(f.plane.Config(), kit.ManagerOptions(scheme))
	kit.Must(f, err)
	virtual, err := cluster.New(f.plane.Config(), func(o *cluster.Options) { o.Scheme = schemes.Virtual() })
	kit.Must(f, err)
	kit.Must(f, mgr.Add(virtual))
	config := &v1alpha1.OperatorConfiguration{}
	v1alpha1.SetDefaults(config)
	set := controller.Set{gardenlet.WithPull(charts.pull)}
	kit.Must(f, set.Add(f.Context(), controller.Deps{
		Manager: mgr, Virtual: virtual, Recorder: events.NewFakeRecorder(100), Clock: clock.RealClock{}, Config: config, Version: "v1", Namespace: "garden",
	}, controller.WithVirtual))
	created, err := client.New(f.plane.Config(), client.Options{Scheme: scheme})
	kit.Must(f, err)
	return created, kit.Run(f, mgr)
}

// TestFirstDeployment is the life of a Gardenlet until its Seed is registered: a kubeconfig that is refused, one that is not, the deployment into
// another cluster, the registration, and the chart of the operator.
func TestFirstDeployment(t *testing.T) {
	f := newFixture(t)
	defer f.inCluster()()
	overwrites := filepath.Join(t.TempDir(), "images.yaml")
	kit.Must(t, os.WriteFile(overwrites, []byte("images: [{name: gardenlet-chart, repository: registry.example.org/charts/gardenlet}]"), 0o600))
	t.Setenv("IMAGEVECTOR_OVERWRITE", overwrites)
	charts := &registry{}
	charts.set(chart(t, ""))
	runtimeCluster, stop := f.operates(charts)
	defer stop()
	garden := read[operatorv1alpha1.Garden](t, "operator", "garden")
	garden.Name = "managedseeds"
	kit.Must(t, runtimeCluster.Create(t.Context(), garden))
	defer func() { kit.Must(t, runtimeCluster.Delete(t.Context(), garden)) }()

	access := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "seed-remote"}, Data: map[string][]byte{"kubeconfig": []byte(
		`{apiVersion: v1, kind: Config, users: [{name: a, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: sh}}}]}`)}}
	defer f.create(access)()
	d := f.gardenlet("remote")
	d.object.Labels = map[string]string{"operator.gardener.cloud/auto-update-gardenlet-helm-chart-ref": "true"}
	d.object.Spec.KubeconfigSecretRef = &corev1.LocalObjectReference{Name: access.Name}
	defer f.create(d.object)()
	d.condition(seedmanagementv1alpha1.SeedRegistered, `False/ReconcileError: the key kubeconfig of Secret garden/seed-remote: user "a" must not use "exec"`)
	kit.Change(t, f.garden, access, func() { access.Data["kubeconfig"] = f.cluster.Kubeconfig() })
	d.wakes("kubeconfig")
	d.condition(seedmanagementv1alpha1.SeedRegistered, "Progressing/Reconciling")
	if why := f.deployment(func(*appsv1.Deployment) string { return "" }); why != "" {
		t.Errorf("the gardenlet is deployed: %s", why)
	}
	kit.Must(t, f.target.Get(t.Context(), client.ObjectKey{Namespace: "garden", Name: "gardenlet-kubeconfig-bootstrap"}, &corev1.Secret{}))

	defer f.create(f.seed("remote"))()
	d.condition(seedmanagementv1alpha1.SeedRegistered, "True/Reconciled")
	kit.Eventually(t, "the kubeconfig is deleted", func() string { return f.gone(f.garden, access) })
	kit.Eventually(t, "nothing refers to it", func() string {
		kit.Must(t, f.garden.Get(t.Context(), client.ObjectKeyFromObject(d.object), d.object))
		if d.object.Spec.KubeconfigSecretRef != nil {
			return "spec.kubeconfigSecretRef is set"
		}
		return ""
	})
	kit.Eventually(t, "the Garden is reconciled", func() string {
		if err := runtimeCluster.Get(t.Context(), client.ObjectKeyFromObject(garden), garden); err != nil {
			return err.Error()
		}
		garden.Status.ObservedGeneration = garden.Generation
		garden.Status.LastOperation = &corev1beta1.LastOperation{
			Type: corev1beta1.LastOperationTypeReconcile, State: corev1beta1.LastOperationStateSucceeded, LastUpdateTime: metav1.Now(), Description: "done",
		}
		return kit.TextOf(runtimeCluster.Status().Update(t.Context(), garden))
	})
	kit.Eventually(t, "the Gardenlet has the chart of the operator", func() string {
		kit.Must(t, f.garden.Get(t.Context(), client.ObjectKeyFromObject(d.object), d.object))
		if ref := ptr.Deref(d.object.Spec.Deployment.Helm.OCIRepository.Ref, ""); ref != "registry.example.org/charts/gardenlet:v1" {
			return ref
		}
		return ""
	})
}
