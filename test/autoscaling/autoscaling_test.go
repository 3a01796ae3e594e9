// Package autoscaling tests the HorizontalPodAutoscaler of API servers with the controllers of Kubernetes. Figures come from the test.
package autoscaling

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/trellis-k8s/trellis/pkg/component/kubeapiserver"
	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/kit"
)

const (
	namespace = "shoot--dev--one"
	group     = "metrics.k8s.io"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

// metrics defines the kind with the figures of Pods, which metrics-server has otherwise, so that the test can create objects.
func metrics() *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "pods." + group, Annotations: map[string]string{apiextensionsv1.KubeAPIApprovedAnnotation: "unapproved, for a test"}},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.NamespaceScoped, Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "pods", Kind: "PodMetrics", ListKind: "PodMetricsList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1beta1", Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", XPreserveUnknownFields: ptr.To(true),
				}},
			}},
		},
	}
}

// deployment returns a Deployment with the name and the labels of that of an API server.
func deployment(replicas int32) *appsv1.Deployment {
	labels := kubeapiserver.Labels()
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: kubeapiserver.Name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: kubeapiserver.Name, Image: "kube-apiserver"}}},
			},
		},
	}
}

// world is a seed with an API server.
type world struct {
	*testing.T
	client client.Client
}

// use says how much of a resource each Pod uses that exists now.
func (w *world) use(cpu, memory string) {
	w.Helper()
	pods := &corev1.PodList{}
	kit.Must(w, w.client.List(w.Context(), pods, client.InNamespace(namespace)))
	for i := range pods.Items {
		pod := &pods.Items[i]
		kit.Must(w, w.client.Apply(w.Context(), client.ApplyConfigurationFromUnstructured(&unstructured.Unstructured{Object: map[string]any{
			"apiVersion": group + "/v1beta1", "kind": "PodMetrics",
			"metadata": map[string]any{"namespace": namespace, "name": pod.Name, "labels": toAny(pod.Labels)},
			// Figures from before a Pod was ready do not count.
			"timestamp": time.Now().Add(time.Hour).UTC().Format(time.RFC3339), "window": "1s",
			"containers": []any{map[string]any{"name": kubeapiserver.Name, "usage": map[string]any{"cpu": cpu, "memory": memory}}},
		}}), client.FieldOwner("test"), client.ForceOwnership))
	}
}

func toAny(of map[string]string) map[string]any {
	all := map[string]any{}
	for key, value := range of {
		all[key] = value
	}
	return all
}

// replicas waits until the Deployment has replicas, and all are ready.
func (w *world) replicas(want int32) {
	w.Helper()
	kit.EventuallyWithin(w, 2*kit.WaitTimeout, fmt.Sprintf("there are %d replicas", want), func() string {
		found := &appsv1.Deployment{}
		if err := w.client.Get(w.Context(), client.ObjectKey{Namespace: namespace, Name: kubeapiserver.Name}, found); err != nil {
			return err.Error()
		}
		if *found.Spec.Replicas != want || found.Status.ReadyReplicas != want {
			scaler := &autoscalingv2.HorizontalPodAutoscaler{}
			_ = w.client.Get(w.Context(), client.ObjectKeyFromObject(found), scaler)
			return fmt.Sprintf("%d are wanted, %d are ready; the autoscaler has the status %+v", *found.Spec.Replicas, found.Status.ReadyReplicas, scaler.Status)
		}
		return ""
	})
}

// TestAPIServer checks that an API server starts with its least number of Pods, gets more when they use much CPU or memory, and never more than its
// greatest number. The time for which the use must be high is left out, so that the test does not wait for it.
func TestAPIServer(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a control plane, which -short excludes")
	}
	cp, err := controlplane.Start(t.Context(), controlplane.Options{ControllerManager: true, Scheduler: true, Nodes: 1, AvailableAtOnce: true})
	kit.Must(t, err)
	t.Cleanup(func() { kit.Must(t, cp.Stop()) })
	_, err = envtest.InstallCRDs(cp.Config(), envtest.CRDInstallOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{metrics()}, MaxTime: kit.WaitTimeout})
	kit.Must(t, err)
	c, err := client.New(cp.Config(), client.Options{})
	kit.Must(t, err)
	w := &world{T: t, client: c}
	kit.Must(t, c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
	objects, err := kubeapiserver.Autoscaler(namespace, kubeapiserver.Scaling{Min: 2, Max: 4})
	kit.Must(t, err)
	kit.Must(t, c.Create(t.Context(), deployment(1)))
	for _, object := range objects {
		scaler, is := object.(*autoscalingv2.HorizontalPodAutoscaler)
		if !is {
			t.Fatalf("there is a %T", object)
		}
		scaler.Spec.Behavior.ScaleUp.StabilizationWindowSeconds = ptr.To[int32](0)
		scaler.Spec.Behavior.ScaleUp.Policies[0].PeriodSeconds = 1
		kit.Must(t, c.Create(t.Context(), scaler))
	}
	w.replicas(2)
	w.use("9", "1G") // of 6 cores and 24 GB
	w.replicas(3)
	w.use("1", "100G")
	w.replicas(4)
}
