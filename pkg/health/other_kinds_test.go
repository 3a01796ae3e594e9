package health

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestOtherKinds(t *testing.T) {
	const widget = "apiVersion: example.org/v1\nkind: Widget\n"
	for name, test := range map[string]struct {
		object             string
		failuresOnly, full Verdict
	}{
		"no status": {widget, Verdict{}, Verdict{}},
		"ready":     {widget + "status: {conditions: [{type: Ready, status: 'True'}]}\n", Verdict{}, Verdict{}},
		"not ready": {widget + "status: {conditions: [{type: Ready, status: 'False', message: soon}]}\n",
			Verdict{}, Verdict{Progressing: "soon"}},
		"not ready, without a message": {widget + "status: {conditions: [{type: Ready, status: 'False'}]}\n",
			Verdict{}, Verdict{Progressing: "InProgress"}},
		"outdated": {widget + "metadata: {generation: 2}\nstatus: {observedGeneration: 1}\n", Verdict{},
			Verdict{Progressing: "Widget generation is 2, but latest observed generation is 1", Unobserved: true}},
		"stalled": {widget + "status: {conditions: [{type: Stalled, status: 'True', message: stuck}]}\n",
			Verdict{Unhealthy: "stuck"}, Verdict{Unhealthy: "stuck"}},
		"stalled, without a message": {widget + "status: {conditions: [{type: Stalled, status: 'True'}]}\n",
			Verdict{Unhealthy: "Failed"}, Verdict{Unhealthy: "Failed"}},
		"reconciling, but stalled before": {widget + "status: {conditions: [{type: Reconciling, status: 'True', message: busy}, " +
			"{type: Stalled, status: 'True'}]}\n", Verdict{}, Verdict{Progressing: "busy"}},
		"terminating": {widget + "metadata: {deletionTimestamp: '2026-01-01T00:00:00Z'}\n", Verdict{}, Verdict{}},
		"condition without type": {widget + "status: {conditions: [{status: 'False'}]}\n",
			Verdict{}, Verdict{}},
		"generation that is no number":   {widget + "metadata: {generation: 2}\nstatus: {observedGeneration: '2'}\n", Verdict{}, Verdict{}},
		"conditions that are no list":    {widget + "status: {conditions: {Ready: true}}\n", Verdict{}, Verdict{}},
		"status that is no map":          {widget + "status: Ready\n", Verdict{}, Verdict{}},
		"kind of the name, other group":  {"apiVersion: example.org/v1\nkind: Deployment\nspec: {replicas: 3}\n", Verdict{}, Verdict{}},
		"kind of the name, other status": {"apiVersion: example.org/v1\nkind: Service\nspec: {type: LoadBalancer}\n", Verdict{}, Verdict{}},
		"older version": {"apiVersion: cert.gardener.cloud/v1alpha0\nkind: Issuer\nstatus: {state: Error}\n",
			Verdict{}, Verdict{}},
		"claim": {"apiVersion: v1\nkind: PersistentVolumeClaim\nstatus: {phase: Pending}\n",
			Verdict{}, Verdict{Progressing: "PVC is not Bound. phase: Pending"}},
	} {
		t.Run(name, func(t *testing.T) {
			obj := objectOf(t, test.object)
			if got := Check(obj, OtherKindsFailuresOnly); got != test.failuresOnly {
				t.Errorf("failures only: got %+v, want %+v", got, test.failuresOnly)
			}
			if got := Check(obj, OtherKindsFullStatus); got != test.full {
				t.Errorf("full status: got %+v, want %+v", got, test.full)
			}
			if got := Check(obj, ""); got != test.failuresOnly {
				t.Errorf("by default: got %+v, want %+v", got, test.failuresOnly)
			}
		})
	}
}

func TestOtherKindsTyped(t *testing.T) {
	claim := &corev1.PersistentVolumeClaim{Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending}}
	for name, test := range map[string]struct {
		obj                runtime.Object
		failuresOnly, full Verdict
	}{
		"claim":    {claim, Verdict{}, Verdict{Progressing: "PVC is not Bound. phase: Pending"}},
		"ingress":  {&networkingv1.Ingress{}, Verdict{}, Verdict{}},
		"metadata": {&metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}}, Verdict{}, Verdict{}},
	} {
		if got := Check(test.obj, OtherKindsFailuresOnly); got != test.failuresOnly {
			t.Errorf("%s, failures only: %+v", name, got)
		}
		if got := Check(test.obj, OtherKindsFullStatus); got != test.full {
			t.Errorf("%s, full status: %+v", name, got)
		}
	}
}

func TestNeedsBody(t *testing.T) {
	type answer struct{ failuresOnly, full bool }
	always, fullOnly, never := answer{true, true}, answer{false, true}, answer{false, false}
	for kind, want := range map[string]answer{
		"Deployment.apps": always, "StatefulSet.apps": always, "DaemonSet.apps": always, "ReplicaSet.apps": always,
		"Job.batch": always, "Pod": always, "ReplicationController": always, "Service": always,
		"CustomResourceDefinition.apiextensions.k8s.io": always, "APIService.apiregistration.k8s.io": always,
		"Prometheus.monitoring.coreos.com": always, "ServiceMonitor.monitoring.coreos.com": always,
		"VerticalPodAutoscaler.autoscaling.k8s.io": always, "Certificate.cert.gardener.cloud": always,
		"Widget.example.org": always, "Gateway.gateway.networking.k8s.io": always, "Deployment.example.org": always,
		"PersistentVolumeClaim": fullOnly, "Namespace": fullOnly, "Node": fullOnly, "CronJob.batch": fullOnly,
		"Ingress.networking.k8s.io": fullOnly, "HorizontalPodAutoscaler.autoscaling": fullOnly,
		"PodDisruptionBudget.policy": fullOnly, "FlowSchema.flowcontrol.apiserver.k8s.io": fullOnly,
		"CertificateSigningRequest.certificates.k8s.io": fullOnly, "ResourceQuota": fullOnly,
		"ValidatingAdmissionPolicy.admissionregistration.k8s.io": fullOnly, "NewerThanThis.apps": fullOnly,
		"Secret": never, "ConfigMap": never, "ServiceAccount": never, "Endpoints": never, "Event": never, "LimitRange": never,
		"PodTemplate": never, "Event.events.k8s.io": never, "NetworkPolicy.networking.k8s.io": never,
		"IngressClass.networking.k8s.io": never, "PriorityClass.scheduling.k8s.io": never, "StorageClass.storage.k8s.io": never,
		"CSIDriver.storage.k8s.io": never, "VolumeAttributesClass.storage.k8s.io": never, "RuntimeClass.node.k8s.io": never,
		"Lease.coordination.k8s.io": never, "EndpointSlice.discovery.k8s.io": never, "ControllerRevision.apps": never,
		"Role.rbac.authorization.k8s.io": never, "RoleBinding.rbac.authorization.k8s.io": never,
		"ClusterRole.rbac.authorization.k8s.io": never, "ClusterRoleBinding.rbac.authorization.k8s.io": never,
		"MutatingWebhookConfiguration.admissionregistration.k8s.io":     never,
		"ValidatingWebhookConfiguration.admissionregistration.k8s.io":   never,
		"ValidatingAdmissionPolicyBinding.admissionregistration.k8s.io": never,
	} {
		gk := schema.ParseGroupKind(kind)
		if got := (answer{NeedsBody(gk, OtherKindsFailuresOnly), NeedsBody(gk, OtherKindsFullStatus)}); got != want {
			t.Errorf("%s: got %+v, want %+v", kind, got, want)
		}
		if NeedsBody(gk, "") != want.failuresOnly {
			t.Errorf("%s: the default is not to report only failures", kind)
		}
	}
}
