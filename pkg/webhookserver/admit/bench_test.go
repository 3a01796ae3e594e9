package admit

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

const typicalPod = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"app-6d64cfc465-k7xs9","generateName":"app-6d64cfc465-","namespace":"shoot--project--name","creationTimestamp":null,
"labels":{"app":"app","pod-template-hash":"6d64cfc465","resources.gardener.cloud/managed-by":"gardener"},"annotations":{"checksum/config":"0123456789abcdef0123456789abcdef"},
"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"app-6d64cfc465","uid":"86e98645-2e05-11e9-863a-b2d4d086dd5a","controller":true,"blockOwnerDeletion":true}],
"managedFields":[{"manager":"kube-controller-manager","operation":"Update","apiVersion":"v1","time":"2030-01-01T00:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:annotations":{".":{},"f:checksum/config":{}},"f:generateName":{},"f:labels":{".":{},"f:app":{},"f:pod-template-hash":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"main\"}":{".":{},"f:image":{},"f:name":{},"f:resources":{}}}}}}]},
"spec":{"volumes":[{"name":"config","configMap":{"name":"config","defaultMode":420}},{"name":"kubeconfig","secret":{"secretName":"generic-token-kubeconfig-1","defaultMode":420}}],
"containers":[{"name":"main","image":"example.org/image:1","command":["/app","--config=/etc/config","--v=2"],"ports":[{"name":"https","containerPort":8443,"protocol":"TCP"}],"env":[{"name":"A","value":"b"}],
"resources":{"limits":{"memory":"512Mi"},"requests":{"cpu":"50m","memory":"128Mi"}},"volumeMounts":[{"name":"config","mountPath":"/etc/config"},{"name":"kubeconfig","mountPath":"/etc/kubeconfig","readOnly":true}],
"livenessProbe":{"httpGet":{"path":"/healthz","port":8443,"scheme":"HTTPS"},"initialDelaySeconds":15,"timeoutSeconds":5,"periodSeconds":10,"successThreshold":1,"failureThreshold":3},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","imagePullPolicy":"IfNotPresent"}],
"restartPolicy":"Always","terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst","serviceAccountName":"app","serviceAccount":"app","securityContext":{},"schedulerName":"default-scheduler",
"tolerations":[{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute","tolerationSeconds":300},{"key":"node.kubernetes.io/unreachable","operator":"Exists","effect":"NoExecute","tolerationSeconds":300}],"priority":0,"enableServiceLinks":true,"preemptionPolicy":"PreemptLowerPriority"},"status":{"phase":"Pending","qosClass":"Burstable"}}`

// BenchmarkMutating measures decoding and the computation of the patch, without the decision of a webhook.
func BenchmarkMutating(b *testing.B) {
	for name, mutate := range map[string]Mutation[*corev1.Pod]{
		"nothing": func(context.Context, *admission.Request, *corev1.Pod) error { return nil },
		"field": func(_ context.Context, _ *admission.Request, pod *corev1.Pod) error {
			pod.Spec.SchedulerName = "other"
			return nil
		},
		"list": func(_ context.Context, _ *admission.Request, pod *corev1.Pod) error {
			pod.Spec.Containers[0].Env = append(pod.Spec.Containers[0].Env, corev1.EnvVar{Name: "B", Value: "c"})
			return nil
		},
	} {
		handler := Mutating(newPod, mutate)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				handler.Handle(b.Context(), request(typicalPod))
			}
		})
	}
}
