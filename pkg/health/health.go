// Package health computes from an object whether it is healthy, and whether it is still rolling out.
//
// Check returns the Verdict on one object. Healthy and Progressing summarize the findings for all objects of a
// ManagedResource. All of them are pure functions: the caller reads the objects.
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

// Verdict is the result of a check of one object. The zero value means healthy and not rolling out. Verdicts are
// comparable with ==.
type Verdict struct {
	// Unhealthy is the reason why the object is not healthy; empty if it is healthy.
	Unhealthy string
	// Progressing describes the rollout in progress; empty if there is none.
	Progressing string
	// Unobserved is set if the object's controller has not observed the last change of the object, so the status refers to
	// an older generation. Unhealthy and Progressing mention this too, for the fields that gardener-resource-manager
	// checks.
	Unobserved bool
	// Err is the reason why the object could not be checked; empty if it could.
	Err string
	// OldPods requests a count of Pods, see Counted. The zero value requests none.
	OldPods PodCount
}

// PodCount selects the Pods of a Deployment that is rolled out, except that Pods of former ReplicaSets may still exist.
type PodCount struct {
	// Selector selects the Pods by their labels, in the Deployment's namespace.
	Selector string
	// Replicas is the expected number of Pods for which RelevantPod returns true, once all old Pods are deleted.
	Replicas int32
}

// Counted returns the verdict after OldPods were counted. The object is progressing if the number differs from the
// expected one (as in gardener-resource-manager).
func (v Verdict) Counted(pods int32) Verdict {
	if v.OldPods == (PodCount{}) {
		return v
	}
	v.Progressing = "" // an earlier count may have found old Pods
	if pods != v.OldPods.Replicas {
		v.Progressing = oldPodsRemain
	}
	v.OldPods = PodCount{}
	return v
}

// unobserved returns the verdict on an object whose controller has not observed the last change.
func unobserved(detail string) Verdict {
	return Verdict{Unhealthy: detail, Progressing: detail, Unobserved: true}
}

// Check checks whether an object is healthy and whether it is still rolling out. Group, version and kind select the
// rule: kinds that gardener-resource-manager checks use its rules, other kinds use kstatus to the extent that other
// defines. The object is unstructured, or typed if client-go's scheme knows its type. Check does not change it. For a
// PartialObjectMetadata, it returns the zero value. If the object cannot be checked, Err is set. Check never panics.
func Check(obj runtime.Object, other OtherKinds) (verdict Verdict) {
	// kstatus asserts the types of some fields, but objects may have any shape. A panic must not stop the caller.
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

// rules holds the rules for the kinds that gardener-resource-manager checks, and for APIServices.
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
	kindOf("apiregistration.k8s.io/v1", "APIService"):                  decoded(checkAPIService),
	kindOf("monitoring.coreos.com/v1", "Prometheus"):                   decoded(checkMonitoring),
	kindOf("monitoring.coreos.com/v1", "Alertmanager"):                 decoded(checkMonitoring),
	kindOf("autoscaling.k8s.io/v1", "VerticalPodAutoscaler"):           decoded(checkAutoscaler),
	kindOf("cert.gardener.cloud/v1alpha1", "Certificate"):              decoded(checkCertificate),
	kindOf("cert.gardener.cloud/v1alpha1", "Issuer"):                   decoded(checkIssuer),
}

func kindOf(apiVersion, kind string) schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(apiVersion, kind)
}
