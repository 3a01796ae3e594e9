// Package access gives the workloads of an extension's chart access to the garden.
package access

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

const (
	// volumeName is the name of the volume with the kubeconfig and the token.
	volumeName = "garden-kubeconfig"
	// KeyKubeconfig is the key of the Secret with the kubeconfig, and the name of its file.
	KeyKubeconfig = "kubeconfig"
	// KeyToken is the key of the Secret with the token, and the name of its file.
	KeyToken = "token"

	envSeedName   = "SEED_NAME"
	envKubeconfig = "GARDEN_KUBECONFIG"
)

// Access is what the workloads of an extension in one namespace get.
type Access struct {
	// Namespace of the workloads.
	Namespace string
	// SeedName is the value of the environment variable SEED_NAME; empty for none.
	SeedName string
	// Kubeconfig is the name of the Secret with the kubeconfig for the garden; empty for no access. Token is that of the Secret with the
	// token, to which the kubeconfig refers in another file of the directory MountPath.
	Kubeconfig, Token, MountPath string
}

// podSpecs are the paths of the Pod specification in workloads.
var podSpecs = map[schema.GroupKind][]string{
	{Group: "apps", Kind: "Deployment"}:  {"spec", "template", "spec"},
	{Group: "apps", Kind: "StatefulSet"}: {"spec", "template", "spec"},
	{Group: "apps", Kind: "DaemonSet"}:   {"spec", "template", "spec"},
	{Group: "batch", Kind: "Job"}:        {"spec", "template", "spec"},
	{Group: "batch", Kind: "CronJob"}:    {"spec", "jobTemplate", "spec", "template", "spec"},
}

// Inject adds the name of the Seed and the access to the garden to workloads. A workload declines the access with the label
// extensions.gardener.cloud/inject-garden-kubeconfig. It reports whether a workload uses the access.
func (a Access) Inject(objects []*unstructured.Unstructured) (used bool, err error) {
	for _, object := range objects {
		path, isWorkload := podSpecs[object.GroupVersionKind().GroupKind()]
		if !isWorkload || object.GetNamespace() != a.Namespace {
			continue
		}
		pod, found, err := unstructured.NestedMap(object.Object, path...)
		if err != nil || !found {
			return used, fmt.Errorf("%s %s has no specification of its pods", object.GetKind(), object.GetName())
		}
		value, labelled := object.GetLabels()[constants.LabelInjectGardenKubeconfig]
		gets := a.Kubeconfig != "" && (!labelled || value == "true")
		used = used || gets
		if err := a.injectInto(pod, gets); err != nil {
			return used, fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)
		}
		if err := unstructured.SetNestedMap(object.Object, pod, path...); err != nil {
			return used, fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return used, nil
}

// injectInto changes the specification of a Pod.
func (a Access) injectInto(pod map[string]any, gets bool) error {
	if gets {
		if err := a.addVolume(pod); err != nil {
			return err
		}
	}
	for _, field := range []string{"initContainers", "containers"} {
		if err := a.addToContainers(pod, field, gets); err != nil {
			return err
		}
	}
	return nil
}

// addVolume adds the volume with the kubeconfig and the token.
func (a Access) addVolume(pod map[string]any) error {
	source := func(secret, key string) corev1.VolumeProjection {
		return corev1.VolumeProjection{Secret: &corev1.SecretProjection{
			LocalObjectReference: corev1.LocalObjectReference{Name: secret},
			Items:                []corev1.KeyToPath{{Key: key, Path: key}}, Optional: ptr.To(false),
		}}
	}
	volume := &corev1.Volume{Name: volumeName, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		DefaultMode: ptr.To[int32](0o644), Sources: []corev1.VolumeProjection{source(a.Kubeconfig, KeyKubeconfig), source(a.Token, KeyToken)},
	}}}
	return appendTo(pod, "volumes", volumeName, volume)
}

// addToContainers adds environment variables and, with access, the volume mount to containers.
func (a Access) addToContainers(pod map[string]any, field string, gets bool) error {
	containers, _, err := unstructured.NestedSlice(pod, field)
	if err != nil {
		return err
	}
	for i := range containers {
		container, ok := containers[i].(map[string]any)
		if !ok {
			return fmt.Errorf("%s[%d] is not an object", field, i)
		}
		if a.SeedName != "" {
			if err := appendTo(container, "env", envSeedName, &corev1.EnvVar{Name: envSeedName, Value: a.SeedName}); err != nil {
				return err
			}
		}
		if !gets {
			continue
		}
		variable := &corev1.EnvVar{Name: envKubeconfig, Value: a.MountPath + "/" + KeyKubeconfig}
		if err := appendTo(container, "env", envKubeconfig, variable); err != nil {
			return err
		}
		mount := &corev1.VolumeMount{Name: volumeName, MountPath: a.MountPath, ReadOnly: true}
		if err := appendTo(container, "volumeMounts", volumeName, mount); err != nil {
			return err
		}
	}
	if len(containers) == 0 {
		return nil
	}
	return unstructured.SetNestedSlice(pod, containers, field)
}

// appendTo appends an item to a list unless it contains an item with that name, so that the chart takes precedence.
func appendTo(object map[string]any, field, name string, item any) error {
	list, _, err := unstructured.NestedSlice(object, field)
	if err != nil {
		return err
	}
	for _, existing := range list {
		if one, ok := existing.(map[string]any); ok && one["name"] == name {
			return nil
		}
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(item)
	if err != nil {
		return err
	}
	return unstructured.SetNestedSlice(object, append(list, content), field)
}
