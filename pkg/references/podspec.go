package references

import corev1 "k8s.io/api/core/v1"

// podSpec adds the references of Pods. gardener-resource-manager's helper does not read init containers, ephemeral
// containers and the volumes that name a Secret for their driver.
func (u users) podSpec(spec *corev1.PodSpec) {
	u.containers(spec.InitContainers)
	u.containers(spec.Containers)
	for i := range spec.EphemeralContainers {
		u.environment(spec.EphemeralContainers[i].EnvFrom, spec.EphemeralContainers[i].Env)
	}
	for i := range spec.Volumes {
		u.volume(&spec.Volumes[i].VolumeSource)
		u.driverSecrets(&spec.Volumes[i].VolumeSource)
	}
	for _, secret := range spec.ImagePullSecrets {
		u.add(KindSecret, secret.Name)
	}
}

func (u users) containers(containers []corev1.Container) {
	for i := range containers {
		u.environment(containers[i].EnvFrom, containers[i].Env)
	}
}

func (u users) environment(sources []corev1.EnvFromSource, variables []corev1.EnvVar) {
	for _, source := range sources {
		if source.ConfigMapRef != nil {
			u.add(KindConfigMap, source.ConfigMapRef.Name)
		}
		if source.SecretRef != nil {
			u.add(KindSecret, source.SecretRef.Name)
		}
	}
	for _, variable := range variables {
		if variable.ValueFrom == nil {
			continue
		}
		if ref := variable.ValueFrom.ConfigMapKeyRef; ref != nil {
			u.add(KindConfigMap, ref.Name)
		}
		u.secretKey(variable.ValueFrom.SecretKeyRef)
	}
}

func (u users) secretKey(ref *corev1.SecretKeySelector) {
	if ref != nil {
		u.add(KindSecret, ref.Name)
	}
}

func (u users) volume(volume *corev1.VolumeSource) {
	if volume.Secret != nil {
		u.add(KindSecret, volume.Secret.SecretName)
	}
	if volume.ConfigMap != nil {
		u.add(KindConfigMap, volume.ConfigMap.Name)
	}
	if volume.Projected == nil {
		return
	}
	for _, source := range volume.Projected.Sources {
		if source.Secret != nil {
			u.add(KindSecret, source.Secret.Name)
		}
		if source.ConfigMap != nil {
			u.add(KindConfigMap, source.ConfigMap.Name)
		}
	}
}

// driverSecrets adds the Secrets that volume drivers use for mounting.
func (u users) driverSecrets(volume *corev1.VolumeSource) {
	var refs []*corev1.LocalObjectReference
	switch {
	case volume.CSI != nil:
		refs = append(refs, volume.CSI.NodePublishSecretRef)
	case volume.FlexVolume != nil:
		refs = append(refs, volume.FlexVolume.SecretRef)
	case volume.ISCSI != nil:
		refs = append(refs, volume.ISCSI.SecretRef)
	case volume.CephFS != nil:
		refs = append(refs, volume.CephFS.SecretRef)
	case volume.RBD != nil:
		refs = append(refs, volume.RBD.SecretRef)
	case volume.ScaleIO != nil:
		refs = append(refs, volume.ScaleIO.SecretRef)
	case volume.StorageOS != nil:
		refs = append(refs, volume.StorageOS.SecretRef)
	case volume.AzureFile != nil:
		u.add(KindSecret, volume.AzureFile.SecretName)
	}
	for _, ref := range refs {
		if ref != nil {
			u.add(KindSecret, ref.Name)
		}
	}
}
