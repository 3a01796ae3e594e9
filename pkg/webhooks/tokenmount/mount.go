package tokenmount

import (
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/trellis-k8s/trellis/pkg/conditiontext"
	"github.com/trellis-k8s/trellis/pkg/webhookserver/admit"
)

const (
	// defaultAccount is the ServiceAccount of Pods that do not name one.
	defaultAccount = "default"
	// volumePrefix is the prefix of the names of token volumes, both of Kubernetes and of this webhook.
	volumePrefix = "kube-api-access-"
	volumeName   = volumePrefix + "gardener"
	// mountPath is where client libraries look for the token.
	mountPath = "/var/run/secrets/kubernetes.io/serviceaccount"

	// The range that Kubernetes allows for a projected token.
	minimumExpirationSeconds = 600
	maximumExpirationSeconds = 1 << 32
)

// eligible reports whether a Pod gets a token if its ServiceAccount disables the token mounts of Kubernetes.
func eligible(spec *corev1.PodSpec) bool {
	return spec.ServiceAccountName != "" && spec.ServiceAccountName != defaultAccount &&
		ptr.Deref(spec.AutomountServiceAccountToken, true) &&
		!slices.ContainsFunc(spec.Volumes, func(volume corev1.Volume) bool { return strings.HasPrefix(volume.Name, volumePrefix) })
}

// expirationSeconds returns the value of the annotation, or the default if it is missing. The error rejects the Pod.
func expirationSeconds(annotations map[string]string, defaultSeconds int64) (int64, error) {
	text, found := annotations[AnnotationExpirationSeconds]
	if !found {
		return defaultSeconds, nil
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil || seconds < minimumExpirationSeconds || seconds > maximumExpirationSeconds {
		return 0, admit.Refuse(http.StatusForbidden,
			"the annotation %s has the value %q: it must be a whole number of seconds from %d to %d, as in \"43200\" for 12 hours",
			AnnotationExpirationSeconds, conditiontext.Shorten(text, 100), minimumExpirationSeconds, int64(maximumExpirationSeconds))
	}
	return seconds, nil
}

// mountToken adds the volume, and mounts it into every container and init container without a mount at the path. It keeps
// existing mounts at the path. If no container needs the volume, it is not added.
func mountToken(spec *corev1.PodSpec, expiration int64) {
	mounted := false
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			if occupied(&containers[i]) {
				continue
			}
			mount := corev1.VolumeMount{Name: volumeName, MountPath: mountPath, ReadOnly: true}
			containers[i].VolumeMounts = append(containers[i].VolumeMounts, mount)
			mounted = true
		}
	}
	if mounted {
		spec.Volumes = append(spec.Volumes, tokenVolume(expiration))
	}
}

// occupied reports whether a container has a mount at the path. The API server would reject a second one.
func occupied(container *corev1.Container) bool {
	return slices.ContainsFunc(container.VolumeMounts, func(mount corev1.VolumeMount) bool {
		return path.Clean(mount.MountPath) == mountPath
	}) || slices.ContainsFunc(container.VolumeDevices, func(device corev1.VolumeDevice) bool {
		return path.Clean(device.DevicePath) == mountPath
	})
}

// tokenVolume returns the same volume as Kubernetes adds.
func tokenVolume(expiration int64) corev1.Volume {
	return corev1.Volume{Name: volumeName, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		DefaultMode: ptr.To[int32](0o644),
		Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{ExpirationSeconds: &expiration, Path: corev1.ServiceAccountTokenKey}},
			{ConfigMap: &corev1.ConfigMapProjection{
				LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"},
				Items:                []corev1.KeyToPath{{Key: corev1.ServiceAccountRootCAKey, Path: corev1.ServiceAccountRootCAKey}},
			}},
			{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{{
				Path:     corev1.ServiceAccountNamespaceKey,
				FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.namespace"},
			}}}},
		},
	}}}
}
