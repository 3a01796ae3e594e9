package references

import (
	"fmt"
	"maps"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// InjectAnnotations records in annotations all ConfigMaps and Secrets that an object uses. The object is a Deployment,
// StatefulSet, DaemonSet, Job, CronJob, Pod, ManagedResource or, as *unstructured.Unstructured, a Prometheus. The
// annotations are set on the object and on its Job and Pod templates. They replace existing reference annotations, so
// call it last.
//
// It finds references in containers of all types, volumes and imagePullSecrets, and spec.secretRefs of a
// ManagedResource. It cannot find references that a program reads through the API. Pass these as additional
// "<kind>/<name>", such as "secret/ca-3f8a12bc".
//
// It returns an error for other kinds, including ReplicaSets. The garbage collector does not read them, so their
// annotations would have no effect.
func InjectAnnotations(obj runtime.Object, additional ...string) error {
	uses := users{}
	for _, text := range additional {
		reference, valid := parseAdditional(text)
		if !valid {
			return fmt.Errorf("additional reference %q: must be %s/<name> or %s/<name>", text, KindConfigMap, KindSecret)
		}
		uses.add(reference.Kind, reference.Name)
	}
	switch obj := obj.(type) {
	case *appsv1.Deployment:
		uses.template(&obj.ObjectMeta, &obj.Spec.Template)
	case *appsv1.StatefulSet:
		uses.template(&obj.ObjectMeta, &obj.Spec.Template)
	case *appsv1.DaemonSet:
		uses.template(&obj.ObjectMeta, &obj.Spec.Template)
	case *batchv1.Job:
		uses.template(&obj.ObjectMeta, &obj.Spec.Template)
	case *batchv1.CronJob:
		uses.podSpec(&obj.Spec.JobTemplate.Spec.Template.Spec)
		uses.annotate(&obj.ObjectMeta, &obj.Spec.JobTemplate.ObjectMeta, &obj.Spec.JobTemplate.Spec.Template.ObjectMeta)
	case *corev1.Pod:
		uses.podSpec(&obj.Spec)
		uses.annotate(&obj.ObjectMeta)
	case *resourcesv1alpha1.ManagedResource:
		for _, secret := range obj.Spec.SecretRefs {
			uses.add(KindSecret, secret.Name)
		}
		uses.annotate(&obj.ObjectMeta)
	case *unstructured.Unstructured:
		return uses.prometheus(obj)
	default:
		return fmt.Errorf("cannot record references of a %T: must be a Deployment, StatefulSet, DaemonSet, Job, CronJob, Pod, "+
			"ManagedResource or, unstructured, a Prometheus", obj)
	}
	return nil
}

// users collects the references of an object.
type users map[Reference]struct{}

func (u users) add(kind, name string) {
	if name != "" { // the API server rejects an empty name, or it means no reference
		u[Reference{Kind: kind, Name: name}] = struct{}{}
	}
}

func (u users) template(object metav1.Object, template *corev1.PodTemplateSpec) {
	u.podSpec(&template.Spec)
	u.annotate(object, &template.ObjectMeta)
}

// annotate replaces the references in annotations. It copies maps, because templates are often shared.
func (u users) annotate(objects ...metav1.Object) {
	for _, object := range objects {
		object.SetAnnotations(u.replace(object.GetAnnotations()))
	}
}

func (u users) replace(before map[string]string) map[string]string {
	after := maps.Clone(before)
	maps.DeleteFunc(after, func(key, _ string) bool { return strings.HasPrefix(key, AnnotationKeyPrefix) })
	if len(u) == 0 {
		return after
	}
	if after == nil {
		after = map[string]string{}
	}
	maps.Copy(after, annotations(u))
	return after
}
