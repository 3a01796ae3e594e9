// Package health computes from an object whether it is healthy, and whether it is still rolling out.
//
// Check looks at one object and finds a Verdict. Healthy and Progressing sum up what was found of all objects of a
// ManagedResource; Aggregate sums up ManagedResources. All of it is pure: the caller reads the objects.
package health

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Verdict is what can be said of one object. The zero value says that it is healthy and not rolling out. Verdicts are
// compared with ==.
type Verdict struct {
	// Unhealthy says why the object is not healthy; empty if it is.
	Unhealthy string
	// Progressing says what is still going on; empty if nothing is.
	Progressing string
	// Unobserved is set if the object's controller has not taken in the last change of the object, so that the status is
	// about an older one. Unhealthy and Progressing say so then too, as far as gardener-resource-manager checks it.
	Unobserved bool
	// Err says why the object could not be checked; empty if it could.
	Err string
	// OldPods asks to count Pods, see Counted; the zero value asks for nothing.
	OldPods PodCount
}

// PodCount names the Pods of a Deployment that is rolled out but for Pods of former ReplicaSets that may still be there.
type PodCount struct {
	// Selector selects the Pods by their labels, in the Deployment's namespace.
	Selector string
	// Replicas is how many of them there are, as reported by RelevantPod, once no former ones are left.
	Replicas int32
}

// Counted returns the verdict on an object whose OldPods were counted: it is progressing if there are not as many as there
// have to be (as gardener-resource-manager).
func (v Verdict) Counted(pods int32) Verdict {
	if v.OldPods == (PodCount{}) {
		return v
	}
	v.Progressing = "" // an earlier count may have said that some remain
	if pods != v.OldPods.Replicas {
		v.Progressing = oldPodsRemain
	}
	v.OldPods = PodCount{}
	return v
}

// unobserved is the verdict on an object whose controller has not taken in the last change.
func unobserved(detail string) Verdict {
	return Verdict{Unhealthy: detail, Progressing: detail, Unobserved: true}
}

// Check reports whether an object is well, and whether it is still rolling out, by the rules of gardener-resource-manager for
// the kinds that it knows, and by kstatus, as far as wanted, for other kinds. Group, version and kind decide. The object is
// unstructured, or typed if client-go's scheme knows its type; it is not changed. Of mere metadata nothing is said. What
// cannot be checked has Err set. Check never panics.
func Check(obj runtime.Object, other OtherKinds) (verdict Verdict) {
	// kstatus asserts the types of some fields, and an object may be of any shape: none may stop the caller.
	defer func() {
		if reason := recover(); reason != nil {
			verdict = Verdict{Err: fmt.Sprintf("the check panicked: %v", reason)}
		}
	}()
	return check(obj, other)
}

func check(obj runtime.Object, other OtherKinds) Verdict {
	switch obj := obj.(type) {
	case nil:
		return Verdict{Err: "there is no object"}
	case *unstructured.Unstructured:
		if rule, found := rules[obj.GroupVersionKind()]; found {
			return rule(obj.Object)
		}
		return checkOther(obj, other)
	case *metav1.PartialObjectMetadata:
		return Verdict{}
	case *appsv1.DaemonSet:
		return checkDaemonSet(obj)
	case *appsv1.Deployment:
		return checkDeployment(obj)
	case *appsv1.ReplicaSet:
		return checkReplicaSet(obj)
	case *appsv1.StatefulSet:
		return checkStatefulSet(obj)
	case *batchv1.Job:
		return checkJob(obj)
	case *corev1.Pod:
		return checkPod(obj)
	case *corev1.ReplicationController:
		return checkReplicationController(obj)
	case *corev1.Service:
		return checkService(obj)
	}
	return checkOtherTyped(obj, other)
}

// rule checks the content of an unstructured object.
type rule func(content map[string]any) Verdict

// rules are the kinds that gardener-resource-manager checks.
var rules = map[schema.GroupVersionKind]rule{
	appsv1.SchemeGroupVersion.WithKind("DaemonSet"):                    decoded(checkDaemonSet),
	appsv1.SchemeGroupVersion.WithKind("Deployment"):                   decoded(checkDeployment),
	appsv1.SchemeGroupVersion.WithKind("ReplicaSet"):                   decoded(checkReplicaSet),
	appsv1.SchemeGroupVersion.WithKind("StatefulSet"):                  decoded(checkStatefulSet),
	batchv1.SchemeGroupVersion.WithKind("Job"):                         decoded(checkJob),
	corev1.SchemeGroupVersion.WithKind("Pod"):                          decoded(checkPod),
	corev1.SchemeGroupVersion.WithKind("ReplicationController"):        decoded(checkReplicationController),
	corev1.SchemeGroupVersion.WithKind("Service"):                      decoded(checkService),
	kindOf("apiextensions.k8s.io/v1", "CustomResourceDefinition"):      decoded(checkDefinition),
	kindOf("apiextensions.k8s.io/v1beta1", "CustomResourceDefinition"): decoded(checkDefinition),
	kindOf("monitoring.coreos.com/v1", "Prometheus"):                   decoded(checkMonitoring),
	kindOf("monitoring.coreos.com/v1", "Alertmanager"):                 decoded(checkMonitoring),
	kindOf("autoscaling.k8s.io/v1", "VerticalPodAutoscaler"):           decoded(checkAutoscaler),
	kindOf("cert.gardener.cloud/v1alpha1", "Certificate"):              decoded(checkCertificate),
	kindOf("cert.gardener.cloud/v1alpha1", "Issuer"):                   decoded(checkIssuer),
}

func kindOf(apiVersion, kind string) schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(apiVersion, kind)
}
