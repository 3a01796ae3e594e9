package faults

import (
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/references"
	"github.com/trellis-k8s/trellis/test/kit"
)

// rollOut updates the status of Deployments as kube-controller-manager does when all Pods are ready.
func (w *world) rollOut() error {
	list := &appsv1.DeploymentList{}
	if err := w.client.List(w.Context(), list, client.InNamespace(w.namespace)); err != nil {
		return err
	}
	for i := range list.Items {
		deployment := &list.Items[i]
		if deployment.Status.ObservedGeneration == deployment.Generation {
			continue
		}
		replicas := ptr.Deref(deployment.Spec.Replicas, 1)
		deployment.Status = appsv1.DeploymentStatus{
			ObservedGeneration: deployment.Generation, TerminatingReplicas: ptr.To[int32](0),
			Replicas: replicas, UpdatedReplicas: replicas, ReadyReplicas: replicas, AvailableReplicas: replicas,
			Conditions: []appsv1.DeploymentCondition{
				{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue},
				{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"},
			},
		}
		err := w.client.Status().Update(w.Context(), deployment, client.FieldOwner("kube-controller-manager"))
		if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// scale increases the replicas of Deployments, as an autoscaler does.
func (w *world) scale() {
	w.Helper()
	if w.scaled == 0 {
		return
	}
	list := &appsv1.DeploymentList{}
	kit.Must(w, w.client.List(w.Context(), list, client.InNamespace(w.namespace)))
	for i := range list.Items {
		patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, w.scaled))
		kit.Must(w, w.client.SubResource("scale").Patch(w.Context(), &list.Items[i], patch, client.WithSubResourceBody(&autoscalingv1.Scale{}),
			client.FieldOwner("kube-controller-manager")))
	}
	w.replicas = w.scaled
	w.eventually(func() []string { return w.objections(w.given) })
}

// mature makes all existing objects old enough to be collected, and no object that is created later.
func (w *world) mature() {
	w.Helper()
	if !w.collects {
		return
	}
	ours, err := w.ours()
	kit.Must(w, err)
	var last time.Time
	for _, obj := range ours {
		if created := obj.GetCreationTimestamp().Time; created.After(last) {
			last = created
		}
	}
	kit.EventuallyTrue(w, "new objects are younger by a second", func() bool { return time.Now().After(last.Add(2 * time.Second)) })
	stopped := last.Add(10 * time.Minute)
	w.collecting.at.Store(&stopped)
}

// refersTo reports whether a Deployment refers to a ConfigMap or a Secret.
func (w *world) refersTo(resource, name string) bool {
	list := &appsv1.DeploymentList{}
	if err := w.client.List(w.always(), list, client.InNamespace(w.namespace)); err != nil {
		w.violate("could not list Deployments: %v", err)
	}
	return slices.ContainsFunc(list.Items, func(deployment appsv1.Deployment) bool {
		for key, value := range deployment.Annotations {
			if reference, ok := references.Parse(key, value); ok && reference.Kind+"s" == resource && reference.Name == name {
				return true
			}
		}
		return false
	})
}

// workloads are the scenarios of objects that run Pods, and of the objects that they use.
func workloads() []scenario {
	scaled := func(version int) []string { return []string{deployment("web", version, 2, ""), autoscaler("web")} }
	rotating := func(version int) []string {
		name := fmt.Sprintf("key-%d", version)
		return []string{
			manifest("v1", "Secret", name+"\n  labels: {"+references.LabelKeyGarbageCollectable+": 'true'}",
				fmt.Sprintf("immutable: true\ntype: Opaque\nstringData: {key: 'of version %d'}", version)),
			deployment("web", 1, 1, "\n  annotations: {"+references.AnnotationKey(references.KindSecret, name)+": "+name+"}"),
		}
	}
	return []scenario{
		{name: "autoscaler", given: state{"a": scaled(1)}, then: state{"a": scaled(2)}, scaled: 5, pruneDelay: soon},
		{name: "rotate", given: state{"a": rotating(1)}, then: state{"a": rotating(2)}, collects: true, pruneDelay: soon},
	}
}

func deployment(name string, version, replicas int, metadata string) string {
	return manifest("apps/v1", "Deployment", name+metadata, fmt.Sprintf(`spec:
  replicas: %d
  selector: {matchLabels: {app: %s}}
  template:
    metadata: {labels: {app: %[2]s}}
    spec: {containers: [{name: main, image: 'main:%d'}]}`, replicas, name, version))
}

func autoscaler(name string) string {
	return manifest("autoscaling/v2", "HorizontalPodAutoscaler", name, `spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: `+name+`}
  maxReplicas: 10`)
}
