package garden

import (
	"encoding/json"
	"strings"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	operatorv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/component/gardensystem"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/webhooks/highavailability"
	"github.com/trellis-k8s/trellis/test/kit/golden"
)

// TestZones checks that the webhook of the resource-manager spreads the Pods of a highly available control plane over nodes, and over zones if there are
// at least two.
func TestZones(t *testing.T) {
	for _, zones := range [][]string{nil, {"a"}, {"a", "b", "c"}} {
		garden := small()
		garden.Spec.RuntimeCluster.Provider.Zones = zones
		garden.Spec.VirtualCluster.ControlPlane = &operatorv1alpha1.ControlPlane{HighAvailability: &operatorv1alpha1.HighAvailability{}}
		reader := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(gardensystem.Namespace(zones)...).Build()
		handler, checked := highavailability.NewHandler(reader, reader, highavailability.Options{}), 0
		for _, bundle := range planOf(t, known(garden)).Bundles {
			for _, deployment := range deploymentsOf(t, bundle) {
				spread := map[string]bool{}
				for _, constraint := range admitted(t, handler, deployment).Spec.Template.Spec.TopologySpreadConstraints {
					spread[constraint.TopologyKey] = true
				}
				if !spread["kubernetes.io/hostname"] || spread["topology.kubernetes.io/zone"] != (len(zones) > 1) {
					t.Errorf("%s is spread over %v in the zones %v", deployment.Name, spread, zones)
				}
				checked++
			}
		}
		if checked < 5 {
			t.Errorf("only %d Deployments have several Pods", checked)
		}
	}
}

// deploymentsOf returns the Deployments of the virtual garden's control plane with several Pods.
func deploymentsOf(t *testing.T, bundle flow.Bundle) []*appsv1.Deployment {
	t.Helper()
	var all []*appsv1.Deployment
	for _, object := range bundle.Objects {
		u, deployment := golden.Unstructured(t, object), &appsv1.Deployment{}
		if u.GetKind() != "Deployment" || !strings.HasPrefix(bundle.Name, prefix) && !strings.HasSuffix(bundle.Name, suffixRuntime) {
			continue
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, deployment); err != nil {
			t.Fatal(err)
		}
		if deployment.Spec.Replicas != nil && *deployment.Spec.Replicas > 1 {
			all = append(all, deployment)
		}
	}
	return all
}

// admitted returns a Deployment as the webhook changes it.
func admitted(t *testing.T, handler admission.Handler, deployment *appsv1.Deployment) *appsv1.Deployment {
	t.Helper()
	deployment.TypeMeta = metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}
	raw, err := json.Marshal(deployment)
	if err != nil {
		t.Fatal(err)
	}
	response := handler.Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Operation: admissionv1.Create, Namespace: deployment.Namespace, Name: deployment.Name, Object: runtime.RawExtension{Raw: raw},
		Kind: metav1.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"},
	}})
	if !response.Allowed {
		t.Fatal(response.Result)
	}
	patches, err := json.Marshal(response.Patches)
	if err != nil {
		t.Fatal(err)
	}
	patch, err := jsonpatch.DecodePatch(patches)
	if err != nil {
		t.Fatal(err)
	}
	if raw, err = patch.Apply(raw); err != nil {
		t.Fatal(err)
	}
	changed := &appsv1.Deployment{}
	if err := json.Unmarshal(raw, changed); err != nil {
		t.Fatal(err)
	}
	return changed
}
