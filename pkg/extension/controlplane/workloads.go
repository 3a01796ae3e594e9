package controlplane

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Container returns the container with a name, or nil if it does not exist.
func Container(spec *corev1.PodSpec, name string) *corev1.Container {
	at := slices.IndexFunc(spec.Containers, func(one corev1.Container) bool { return one.Name == name })
	if at < 0 {
		return nil
	}
	return &spec.Containers[at]
}

// SetContainer adds a container, or replaces the container with the same name.
func SetContainer(spec *corev1.PodSpec, one corev1.Container) {
	if found := Container(spec, one.Name); found != nil {
		*found = one
		return
	}
	spec.Containers = append(spec.Containers, one)
}

// SetContainerFlag sets a flag of a container. It uses the arguments if they contain the flag or the command does not and
// there are arguments, otherwise the command.
func SetContainerFlag(container *corev1.Container, flag, value string) {
	if hasFlag(container.Args, flag) || !hasFlag(container.Command, flag) && len(container.Args) > 0 {
		container.Args = SetFlag(container.Args, flag, value)
		return
	}
	container.Command = SetFlag(container.Command, flag, value)
}

func hasFlag(command []string, flag string) bool {
	return slices.ContainsFunc(command, func(one string) bool { return isFlag(one, flag) })
}

func isFlag(argument, flag string) bool {
	return argument == flag || strings.HasPrefix(argument, flag+"=")
}

// SetFlag sets a flag, such as --cloud-provider, in a command line. It replaces an existing flag.
func SetFlag(command []string, flag, value string) []string {
	wanted := flag + "=" + value
	at := slices.IndexFunc(command, func(one string) bool { return isFlag(one, flag) })
	if at < 0 {
		return append(slices.Clone(command), wanted)
	}
	changed := slices.Clone(command)
	changed[at] = wanted
	return changed
}

// RemoveFlag removes a flag from a command line.
func RemoveFlag(command []string, flag string) []string {
	return slices.DeleteFunc(slices.Clone(command), func(one string) bool { return isFlag(one, flag) })
}

// AddToFlag adds an element to a flag whose value is a comma-separated list, such as --enable-admission-plugins, if it is missing.
func AddToFlag(command []string, flag, element string) []string {
	elements := elementsOf(command, flag)
	if slices.Contains(elements, element) {
		return command
	}
	return SetFlag(command, flag, strings.Join(append(elements, element), ","))
}

// RemoveFromFlag removes an element from a flag whose value is a comma-separated list.
func RemoveFromFlag(command []string, flag, element string) []string {
	elements := elementsOf(command, flag)
	if !slices.Contains(elements, element) {
		return command
	}
	left := slices.DeleteFunc(elements, func(one string) bool { return one == element })
	if len(left) == 0 {
		return RemoveFlag(command, flag)
	}
	return SetFlag(command, flag, strings.Join(left, ","))
}

func elementsOf(command []string, flag string) []string {
	for _, one := range command {
		if value, found := strings.CutPrefix(one, flag+"="); found && value != "" {
			return strings.Split(value, ",")
		}
	}
	return nil
}

// SetEnv sets an environment variable.
func SetEnv(container *corev1.Container, one corev1.EnvVar) {
	at := slices.IndexFunc(container.Env, func(other corev1.EnvVar) bool { return other.Name == one.Name })
	if at < 0 {
		container.Env = append(container.Env, one)
		return
	}
	container.Env[at] = one
}

// SetVolume adds a volume, or replaces the volume with the same name.
func SetVolume(spec *corev1.PodSpec, one corev1.Volume) {
	at := slices.IndexFunc(spec.Volumes, func(other corev1.Volume) bool { return other.Name == one.Name })
	if at < 0 {
		spec.Volumes = append(spec.Volumes, one)
		return
	}
	spec.Volumes[at] = one
}

// SetVolumeMount adds a mount, or replaces the mount at the same path.
func SetVolumeMount(container *corev1.Container, one corev1.VolumeMount) {
	at := slices.IndexFunc(container.VolumeMounts, func(other corev1.VolumeMount) bool { return other.MountPath == one.MountPath })
	if at < 0 {
		container.VolumeMounts = append(container.VolumeMounts, one)
		return
	}
	container.VolumeMounts[at] = one
}
