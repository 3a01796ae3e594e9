package cli

import (
	"os"
	"path/filepath"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	operatorv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
	"github.com/trellis-k8s/trellis/test/kit"
)

// showsGarden shows a Garden of the cluster with the ManagedResources, which needs no flag. The objects of its ManagedResource are in the virtual
// garden.
func (f *fleetWorld) showsGarden(t *testing.T) {
	t.Helper()
	f.run("get", "gardens/main").says(t, 2, "!does not serve Gardens (operator.gardener.cloud/v1alpha1)", "!--context")
	_, err := envtest.InstallCRDs(f.controlPlane.Config(), envtest.CRDInstallOptions{Paths: []string{"../../config/crd/operator"}, ErrorIfPathMissing: true})
	kit.Must(t, err)
	scheme := runtime.NewScheme()
	kit.Must(t, operatorv1alpha1.AddToScheme(scheme))
	runtimeCluster, err := client.New(f.controlPlane.Config(), client.Options{Scheme: scheme})
	kit.Must(t, err)
	made := &operatorv1alpha1.Garden{}
	text, err := os.ReadFile(filepath.Join(repository(t), "examples", "fleet", "operator", "garden.yaml"))
	kit.Must(t, err)
	kit.Must(t, yaml.UnmarshalStrict(text, made))
	made.Name = "main"
	kit.Must(t, runtimeCluster.Create(t.Context(), made))
	f.run("get", "gardens/mein").says(t, 2, "!Garden mein not found in the cluster", "!did you mean main?")
	f.run("why", "gardens/main").says(t, 0, "Garden main: no operation has begun", "!No ManagedResource of Garden main is in the cluster", "!operator is running")

	made.Status.ObservedGeneration = made.Generation
	made.Status.LastOperation = &corev1beta1.LastOperation{
		Type: corev1beta1.LastOperationTypeReconcile, State: corev1beta1.LastOperationStateProcessing, Progress: 50, Description: "Waiting: etcd", LastUpdateTime: metav1.Now(),
	}
	kit.Must(t, runtimeCluster.Status().Update(t.Context(), made))
	f.emit("garden", f.technical+"-garden", made)
	f.run("get", "garden.operator.gardener.cloud/main").says(t, 0, "Garden main: Reconcile Processing, 50 %", "Waiting: etcd", "garden "+f.technical+"-garden Ready")
	f.run("tree", "gardens/main").says(t, 0, "Garden main Processing", "name the cluster of the Shoot, or of the virtual garden, with --target-kubeconfig")
	f.run("why", "gardens/main").says(t, 0, "!All ManagedResources of Garden main are ready or suspended (1).")
	f.run("get", "garden/"+f.technical+"-garden").says(t, 0, f.technical+"-garden Ready") // a ManagedResource in a namespace
	f.run("can-i", "gardens/main", "get", "secrets").says(t, 2, "!neither seed/NAME nor shoot/NAMESPACE/NAME")
	f.completes("get", "gard").says(t, 0, "gardens/\n")
	f.completes("get", "gardens/").says(t, 0, "gardens/main\n")
	f.completes("get", "s").says(t, 0, "shoot/\n", "seed/\n")
}
