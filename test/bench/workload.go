package main

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// Labels on all written objects: their workload and their revision.
const (
	labelSet      = "bench-set"
	labelRevision = "bench-revision"
)

// workload is a number of ManagedResources of one size.
type workload struct {
	// set is part of the names of all namespaces and separates workloads.
	set string
	// class is the class of the ManagedResources.
	class      string
	resources  int
	objects    int
	namespaces int
}

func (w workload) namespace(i int) string {
	return fmt.Sprintf("bench-%s-%d", w.set, i%w.namespaces)
}

func (w workload) key(i int) types.NamespacedName {
	return types.NamespacedName{Namespace: w.namespace(i), Name: fmt.Sprintf("mr-%05d", i)}
}

// managedResource returns the ManagedResource with a number. It refers to one Secret with the same name.
func (w workload) managedResource(i int) *resourcesv1alpha1.ManagedResource {
	key := w.key(i)
	mr := &resourcesv1alpha1.ManagedResource{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, Labels: map[string]string{labelSet: w.set}},
	}
	mr.Spec.SecretRefs = []resourcesv1alpha1.LocalObjectReference{{Name: key.Name}}
	if w.class != "" {
		mr.Spec.Class = &w.class
	}
	return mr
}

// secret returns the Secret of a ManagedResource, with one key of YAML for each object.
func (w workload) secret(i, revision int) (*corev1.Secret, error) {
	key := w.key(i)
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, Labels: map[string]string{labelSet: w.set}},
		Data:       make(map[string][]byte, w.objects),
	}
	for j := range w.objects {
		object := w.object(i, j, revision)
		content, err := yaml.Marshal(object.content)
		if err != nil {
			return nil, fmt.Errorf("encode %s %s: %w", object.kind.name, object.name, err)
		}
		secret.Data[fmt.Sprintf("%03d-%s.yaml", j, object.kind.plural)] = content
	}
	return secret, nil
}

// object is one manifest.
type object struct {
	kind            kind
	namespace, name string
	content         map[string]any
}

// object returns a manifest of a ManagedResource. Every revision changes every object, not only its labels.
func (w workload) object(i, j, revision int) object {
	key := w.key(i)
	kind := kinds[j%len(kinds)]
	name := fmt.Sprintf("%s-%03d", key.Name, j)
	content := kind.content(name, revision)
	content["apiVersion"], content["kind"] = kind.groupVersion(), kind.name
	content["metadata"] = map[string]any{
		"namespace": key.Namespace, "name": name,
		"labels": map[string]any{labelSet: w.set, labelRevision: fmt.Sprint(revision)},
	}
	return object{kind: kind, namespace: key.Namespace, name: name, content: content}
}

// configMaps returns the ConfigMaps of the workload.
func (w workload) configMaps() []types.NamespacedName {
	var keys []types.NamespacedName
	for i := range w.resources {
		for j := range w.objects {
			if kinds[j%len(kinds)].name == "ConfigMap" {
				keys = append(keys, types.NamespacedName{Namespace: w.namespace(i), Name: fmt.Sprintf("%s-%03d", w.key(i).Name, j)})
			}
		}
	}
	return keys
}

// count returns the number of objects of a kind in the workload.
func (w workload) count(name string) int {
	count := 0
	for j := range w.objects {
		if kinds[j%len(kinds)].name == name {
			count++
		}
	}
	return count * w.resources
}
