package installation

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
	// mountPath is the path of the access to the garden in containers. volumeName is the name of the volume.
	mountPath  = "/var/run/secrets/gardener.cloud/garden/generic-kubeconfig"
	volumeName = "garden-kubeconfig"

	keyKubeconfig = "kubeconfig"
	keyToken      = "token"

	envSeedName   = "SEED_NAME"
	envKubeconfig = "GARDEN_KUBECONFIG"
)

// podSpecs are the paths of the Pod specification in workloads.
var podSpecs = map[schema.GroupKind][]string{
	{Group: "apps", Kind: "Deployment"}:  {"spec", "template", "spec"},
	{Group: "apps", Kind: "StatefulSet"}: {"spec", "template", "spec"},
	{Group: "apps", Kind: "DaemonSet"}:   {"spec", "template", "spec"},
	{Group: "batch", Kind: "Job"}:        {"spec", "template", "spec"},
	{Group: "batch", Kind: "CronJob"}:    {"spec", "jobTemplate", "spec", "template", "spec"},
}

// inject adds the name of the Seed to the workloads in a namespace. If the name of a Secret with a kubeconfig is given,
// it also adds access to the garden. It reports whether a workload uses the access.
func inject(objects []*unstructured.Unstructured, namespace, seedName, kubeconfig string) (used bool, err error) {
	for _, object := range objects {
		path, isWorkload := podSpecs[object.GroupVersionKind().GroupKind()]
		if !isWorkload || object.GetNamespace() != namespace {
			continue
		}
		pod, found, err := unstructured.NestedMap(object.Object, path...)
		if err != nil || !found {
			return used, fmt.Errorf("%s %s has no specification of its pods", object.GetKind(), object.GetName())
		}
		value, labelled := object.GetLabels()[constants.LabelInjectGardenKubeconfig]
		access := kubeconfig != "" && (!labelled || value == "true")
		if access {
			used = true
			if err := addVolume(pod, kubeconfig); err != nil {
				return used, fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)
			}
		}
		for _, field := range []string{"initContainers", "containers"} {
			if err := addToContainers(pod, field, seedName, access); err != nil {
				return used, fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)
			}
		}
		if err := unstructured.SetNestedMap(object.Object, pod, path...); err != nil {
			return used, fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return used, nil
}

// addVolume adds the volume with the kubeconfig and the token.
func addVolume(pod map[string]any, kubeconfig string) error {
	source := func(secret, key string) corev1.VolumeProjection {
		return corev1.VolumeProjection{Secret: &corev1.SecretProjection{
			LocalObjectReference: corev1.LocalObjectReference{Name: secret},
			Items:                []corev1.KeyToPath{{Key: key, Path: key}}, Optional: ptr.To(false),
		}}
	}
	volume := &corev1.Volume{Name: volumeName, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		DefaultMode: ptr.To[int32](0o644), Sources: []corev1.VolumeProjection{
			source(kubeconfig, keyKubeconfig), source(accessSecretName, keyToken),
		},
	}}}
	return appendTo(pod, "volumes", volumeName, volume)
}

// addToContainers adds environment variables and, with access, the volume mount to containers.
func addToContainers(pod map[string]any, field, seedName string, access bool) error {
	containers, _, err := unstructured.NestedSlice(pod, field)
	if err != nil {
		return err
	}
	for i := range containers {
		container, ok := containers[i].(map[string]any)
		if !ok {
			return fmt.Errorf("%s[%d] is not an object", field, i)
		}
		if err := appendTo(container, "env", envSeedName, &corev1.EnvVar{Name: envSeedName, Value: seedName}); err != nil {
			return err
		}
		if !access {
			continue
		}
		if err := appendTo(
			container, "env", envKubeconfig, &corev1.EnvVar{Name: envKubeconfig, Value: mountPath + "/" + keyKubeconfig},
		); err != nil {
			return err
		}
		if err := appendTo(
			container, "volumeMounts", volumeName, &corev1.VolumeMount{Name: volumeName, MountPath: mountPath, ReadOnly: true},
		); err != nil {
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
